"""What may be said to ``drain``. It is refused before Spark or a queue manager is asked, so that none is there."""

from __future__ import annotations

import inspect

import pytest

from trigmon.spark import FileSink, batches, drain
from trigmon.spark.drain_arguments import OF_BATCHES


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "either each, a function, or table"),
        ({"each": print, "table": "t"}, "either each, a function, or table"),
        ({"table": "t", "refuse": print}, "refuse goes with each"),
        ({"stream": print}, "a stream has a checkpoint"),
        ({"each": print, "checkpoint": "c"}, "a stream has a checkpoint"),
        ({"each": print, "merge_schema": True}, "merge_schema goes with table"),
    ],
)
def test_a_job_says_where_to_once(given, said):
    with pytest.raises(TypeError, match=said):
        drain(None, **given)


@pytest.mark.parametrize(
    ("positional", "named", "said"),
    [
        (("Q",), {"table": "t"}, "each is a function, not 'Q'; the queue is named by queue='Q'"),
        (("Q",), {}, "the queue is named by queue='Q'"),
        ((5,), {}, "each is a function, not 5"),
        ((), {"stream": "s", "checkpoint": "c"}, "stream is a function, not 's'"),
        ((), {"table": "t", "transform": "s"}, "transform is a function, not 's'"),
        ((), {"table": "t", "progress": True}, "progress is a function, not True"),
        ((), {"to": "delta"}, "to is a sink, .* not 'delta'; a directory of Parquet files is named by table="),
        ((), {"to": FileSink}, "to is a sink, .* not FileSink; "),
        ((), {"table": "t", "format": "json"}, "no argument format; format is an option: options={'format': ...}"),
        ((), {"table": "t", "min_partitions": 2}, "minPartitions is an option: options={'minPartitions': ...}"),
        ((), {"table": "t", "maxRows": 2}, "no argument maxRows; that is the argument max_rows"),
        ((), {"table": "t", "address": "unix:/q"}, "that is the argument qmgr, which may be an address"),
        ((), {"path": "t"}, "no argument path: is table meant"),
        ((), {"sink": "t"}, "no argument sink: is to meant"),
        ((), {"table": "t", "shema": "id int"}, "no argument shema: is schema meant"),
        ((), {"table": "t", "zzz": 1}, "no argument zzz; it has each, table, .* schema"),
    ],
)
def test_an_argument_of_another_kind_or_name_is_refused_with_what_is_meant(positional, named, said):
    with pytest.raises(TypeError, match=said):
        drain(None, *positional, **named)


def test_a_drain_has_the_arguments_of_batches():
    given = inspect.signature(batches).parameters.keys() - {"spark", "sink", "in_plan"}
    assert set(OF_BATCHES) == given

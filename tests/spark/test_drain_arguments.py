"""What may be said to ``drain``. It is refused before Spark or a queue manager is asked, so that none is there."""

from __future__ import annotations

import inspect
from collections import ChainMap
from decimal import Decimal
from functools import partial, wraps

import numpy as np
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from trigmon.spark import FileSink, batches, drain
from trigmon.spark.drain_arguments import OF_BATCHES, check_functions, check_kinds, check_session


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
        (("Q",), {"table": "t"}, "each is a function, not 'Q'; a queue is named by queue=, a directory by table="),
        (("Q",), {}, "a queue is named by queue="),
        ((5,), {}, "each is a function, not 5"),
        ((), {"stream": "s", "checkpoint": "c"}, "stream is a function, not 's'"),
        ((), {"table": "t", "transform": "s"}, "transform is a function, not 's'"),
        ((), {"table": "t", "progress": True}, "progress is a function, not True"),
        ((), {"each": lambda frame: 0}, "each is called as each\\(frame, batch\\), and takes \\(frame\\)"),
        ((), {"table": "t", "transform": lambda: 0}, "transform is called as transform\\(frame\\), and takes \\(\\)"),
        ((), {"table": 5}, "table is a directory, .* not 5; a sink is given as to="),
        ((), {"table": ""}, "table is a directory, .* not ''"),
        ((), {"to": "delta"}, "to is a sink, .* not 'delta'; a directory of Parquet files is named by table="),
        ((), {"to": FileSink}, "to is a sink, .* not FileSink; "),
        ((), {"table": "t", "format": "json"}, "no argument format; format is an option: options={'format': ...}"),
        ((), {"table": "t", "min_partitions": 2}, "minPartitions is an option: options={'minPartitions': ...}"),
        ((), {"table": "t", "maxRows": 2}, "no argument maxRows; that is the argument max_rows"),
        ((), {"table": "t", "address": "unix:/q"}, "that is the argument qmgr, which may be an address"),
        ((), {"path": "t"}, "no argument path: is table meant"),
        ((), {"table": "t", "batch_size": 5}, "no argument batch_size: is max_rows meant"),
        ((), {"table": "t", "partitionBy": "a"}, "a sink has it, as to=FileSink"),
        ((), {"table": "t", "partition_by": ["a"]}, "a sink has it, as to=FileSink\\('/data/orders', partition_by="),
        ((), {"sink": "t"}, "no argument sink: is to meant"),
        ((), {"table": "t", "shema": "id int"}, "no argument shema: is schema meant"),
        ((), {"table": "t", "zzz": 1}, "no argument zzz; it has each, table, .* schema"),
    ],
)
def test_an_argument_of_another_kind_or_name_is_refused_with_what_is_meant(positional, named, said):
    with pytest.raises(TypeError, match=said):
        drain(None, *positional, **named)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"queue": ["Q"]}, "queue is the name of a queue, not \\['Q'\\]"),
        ({"qmgr": 5}, "qmgr is the name of a queue manager, or its address, not 5"),
        ({"consumer": 5}, "consumer is a name, not 5"),
        ({"max_rows": "3"}, "max_rows is a whole number, a number of messages, not '3'"),
        ({"max_rows": 2.5}, "max_rows is a whole number, .* not 2.5"),
        ({"max_bytes": float("nan")}, "max_bytes is a whole number, a number of bytes, not nan"),
        ({"groups": "yes"}, "groups is True or False, not 'yes'"),
        ({"attempts": "two"}, "attempts is a number, not 'two'"),
        ({"wait_interval_ms": "1s"}, "wait_interval_ms is a whole number, .* not '1s'"),
        ({"options": "json"}, "options is a dict, .* not 'json'"),
        ({"options": {1: "json"}}, "an option's name is a text, not 1"),
        ({"schema": ["id"]}, "schema is a text, .* or a StructType, not \\['id'\\]"),
        ({"schema": dict}, "schema is a text, .* not <class 'dict'>"),
    ],
)
def test_an_argument_of_batches_of_another_kind_is_refused_by_its_name(given, said):
    with pytest.raises(TypeError, match=said):
        check_kinds(given)


def injected(function):
    """Gives a function its first argument."""

    @wraps(function)
    def inner(*of):
        return function("database", *of)

    return inner


def test_arguments_of_their_kinds_are_taken():
    check_kinds({"max_rows": np.int64(5), "options": {}, "schema": StructType(), "queue": "Q", "groups": False})
    check_kinds({"max_rows": 1e3, "max_bytes": np.float64(1e6), "wait_interval_ms": 0.5 * 1000, "attempts": 3.0})
    check_kinds({"options": ChainMap({"format": "json"}), "max_bytes": Decimal(5)})
    check_kinds(dict.fromkeys(OF_BATCHES))


@pytest.mark.parametrize(
    "each",
    [partial(print, "x"), print, [].append, injected(lambda db, frame, batch: 0), lambda *of: 0, str, False, None],
)
def test_functions_that_can_be_called_with_a_frame_and_its_batch_are_taken(each):
    check_functions({"each": each})


class Passing:
    """A session that passes on what it is asked for."""

    def __getattr__(self, name):
        return name


@pytest.mark.parametrize("spark", [None, "Q", SparkSession, SparkSession.builder, 5])
def test_what_is_no_session_is_refused(spark):
    with pytest.raises(TypeError, match="the first argument is a Spark session"):
        check_session(spark)
    check_session(Passing())


def test_a_drain_has_the_arguments_of_batches():
    given = inspect.signature(batches).parameters.keys() - {"spark", "sink"}
    assert set(OF_BATCHES) == given

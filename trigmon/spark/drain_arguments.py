"""The arguments of a drain: one of another kind, or that there is not, is refused with what is meant."""

from __future__ import annotations

import difflib
import inspect
import os
from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any

from trigmon.spark.frame_source import DDL_EXAMPLE, GIVEN_BY_DRAIN
from trigmon.spark.options import SHOWN

_KINDS: dict[str, tuple[type, str]] = {
    "queue": (str, "the name of a queue"),
    "qmgr": (str, "the name of a queue manager, or its address"),
    "consumer": (str, "a name"),
    "groups": (bool, "True or False"),
}
"""What an argument of :func:`~trigmon.spark.queue_batches.batches` is; None stands for one that is not given."""
_NUMBERS = {
    "max_rows": "a number of messages",
    "max_bytes": "a number of bytes",
    "wait_interval_ms": "a number of milliseconds",
}
"""Those that are whole numbers, also as 1e6."""
OF_BATCHES = (*_KINDS, *_NUMBERS, "attempts", "options", "refuse", "schema", "shows_progress", "in_plan")
"""The arguments of it that a drain takes, too."""
_FUNCTIONS = {
    "each": ("frame", "batch"),
    "stream": ("frame",),
    "transform": ("frame",),
    "progress": ("batch",),
    "refuse": ("batch_id",),
}
"""The functions, and what each is called with."""
_OF_DRAIN = ("each", "table", "to", "stream", "checkpoint", "transform", "progress", "merge_schema")
_OPTIONS = {name.lower(): name for name in SHOWN}
_MEANT = {"sink": "to", "path": "table", "q_name": "queue", "batch_size": "max_rows"}
"""What is meant by names that are spelled otherwise."""


def check_session(spark: object) -> None:
    """Raises TypeError for what is no Spark session; of Spark Connect, it is one of another class."""
    try:
        is_one = not isinstance(spark, type) and hasattr(spark, "readStream")
    except Exception:
        return  # a Spark that is gone says so itself
    if not is_one:
        raise TypeError(f"the first argument is a Spark session, as SparkSession.builder.getOrCreate(), not {spark!r}")


def check_kinds(given: Mapping[str, object]) -> None:
    """Raises TypeError for an argument of :func:`~trigmon.spark.queue_batches.batches` of another kind."""
    for name, (kind, text) in _KINDS.items():
        _check(name, given.get(name), text, isinstance(given.get(name), kind))
    for name, text in _NUMBERS.items():
        _check(name, given.get(name), f"a whole number, {text}", _is_whole(given.get(name)))
    _check("attempts", given.get("attempts"), "a number", isinstance(given.get("attempts"), Real))
    options, schema = given.get("options"), given.get("schema")
    _check("options", options, "a dict, as {'format': 'json'}", hasattr(options, "keys"))
    if isinstance(options, Mapping) and (odd := [name for name in options if not isinstance(name, str)]):
        raise TypeError(f"an option's name is a text, not {odd[0]!r}")
    is_type = hasattr(schema, "json") and not isinstance(schema, type)
    _check("schema", schema, f"a text, as {DDL_EXAMPLE}, or a StructType", isinstance(schema, str) or is_type)


def _check(name: str, value: object, kind: str, is_it: bool) -> None:
    if value is not None and not is_it:
        raise TypeError(f"{name} is {kind}, not {value!r}")


def _is_whole(value: Any) -> bool:
    """Returns whether a number is whole; it may be computed, as a float."""
    try:
        return not isinstance(value, str) and int(value) == value
    except (TypeError, ValueError, OverflowError):
        return False


def check_places(each: object, table: object, to: object, stream: object) -> None:
    """Raises TypeError unless a drain says once where to, by an argument of its kind."""
    if isinstance(each, str):
        raise TypeError(f"each is a function, not {each!r}; a queue is named by queue=, a directory by table=")
    if sum(way is not None for way in (each, table, to, stream)) != 1:
        raise TypeError("drain takes either each, a function, or table, a directory, to, a sink, or stream, a function")
    if table is not None and (not isinstance(table, (str, os.PathLike)) or not str(table)):
        raise TypeError(f"table is a directory, as '/data/orders', not {table!r}; a sink is given as to=")
    if to is not None and (isinstance(to, type) or not hasattr(to, "write")):
        called = to.__name__ if isinstance(to, type) else repr(to)
        raise TypeError(
            f"to is a sink, as FileSink('/data/orders', form='json') or one of trigmon.spark.sinks, not {called}; "
            "a directory of Parquet files is named by table="
        )


def check_together(
    each: object, table: object, stream: object, checkpoint: object, merge_schema: bool, refuse: object
) -> None:
    """Raises TypeError for arguments that do not go together."""
    if (stream is None) != (checkpoint is None):
        raise TypeError("a stream has a checkpoint, a directory of this query alone, and nothing else has one")
    if refuse is not None and each is None:
        raise TypeError("refuse goes with each: tables do not need it, and a stream's batches cannot be divided")
    if merge_schema and table is None:
        raise TypeError("merge_schema goes with table; a sink is made with it, as FileSink(..., merge_schema=True)")


def check_functions(given: Mapping[str, object]) -> None:
    """Raises TypeError for a value that cannot be called as it will be; None and False are not given."""
    for name, value in given.items():
        if value is None or value is False:
            continue
        if not callable(value):
            raise TypeError(f"{name} is a function, not {value!r}")
        _check_parameters(name, value)


def _check_parameters(name: str, function: object) -> None:
    """Raises TypeError for a function of other parameters. Of what is no plain function nobody can tell."""
    if not inspect.isfunction(function):
        return
    try:
        signature = inspect.signature(function, follow_wrapped=False)
    except Exception:  # annotations may name what is not there
        return
    called = ", ".join(_FUNCTIONS[name])
    try:
        signature.bind(*_FUNCTIONS[name])
    except TypeError as error:
        raise TypeError(f"{name} is called as {name}({called}), and takes {signature}: {error}") from None


def check_names(given: Iterable[str]) -> None:
    """Raises TypeError for an argument that a drain has not, with the one that is meant."""
    for name in given:
        if name not in OF_BATCHES:
            raise TypeError(f"drain has no argument {name}{_meant(name)}")


def _meant(name: str) -> str:
    """Returns the end of the error: the argument or the option that is meant."""
    if name in _MEANT:
        return f": is {_MEANT[name]} meant?"
    option = name.replace("_", "").lower()
    if option == "partitionby":
        return "; a sink has it, as to=FileSink('/data/orders', partition_by=...)"
    if option in GIVEN_BY_DRAIN:
        return f"; that is {GIVEN_BY_DRAIN[option]}"
    if option in _OPTIONS:
        return f"; {_OPTIONS[option]} is an option: options={{{_OPTIONS[option]!r}: ...}}"
    known = [*_OF_DRAIN, *OF_BATCHES]
    near = difflib.get_close_matches(name, known, n=1)
    return f": is {near[0]} meant?" if near else f"; it has {', '.join(known)}"

"""The arguments of a drain: one of another kind, or that there is not, is refused with what is meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

from trigmon.spark.frame_source import GIVEN_BY_DRAIN
from trigmon.spark.options import SHOWN

OF_BATCHES = (
    *("queue", "qmgr", "consumer", "max_rows", "max_bytes", "groups", "attempts", "refuse", "wait_interval_ms"),
    *("options", "schema", "shows_progress"),
)
"""The arguments of :func:`~trigmon.spark.queue_batches.batches` that a drain takes, too."""
_OF_DRAIN = ("each", "table", "to", "stream", "checkpoint", "transform", "progress", "merge_schema")
_OPTIONS = {name.lower(): name for name in SHOWN}
_MEANT = {"sink": "to", "path": "table", "q_name": "queue"}
"""What is meant by names that are spelled otherwise."""


def check_places(each: object, table: object, to: object, stream: object) -> None:
    """Raises TypeError unless a drain says once where to, by an argument of its kind."""
    if isinstance(each, str):
        raise TypeError(f"each is a function, not {each!r}; the queue is named by queue={each!r}")
    if sum(way is not None for way in (each, table, to, stream)) != 1:
        raise TypeError("drain takes either each, a function, or table, a directory, to, a sink, or stream, a function")
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
    """Raises TypeError for a value that cannot be called; None stands for an argument that is not given."""
    for name, value in given.items():
        if value is not None and not callable(value):
            raise TypeError(f"{name} is a function, not {value!r}")


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
    if option in GIVEN_BY_DRAIN:
        return f"; that is {GIVEN_BY_DRAIN[option]}"
    if option in _OPTIONS:
        return f"; {_OPTIONS[option]} is an option: options={{{_OPTIONS[option]!r}: ...}}"
    known = [*_OF_DRAIN, *OF_BATCHES]
    near = difflib.get_close_matches(name, known, n=1)
    return f": is {near[0]} meant?" if near else f"; it has {', '.join(known)}"

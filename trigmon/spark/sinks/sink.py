"""What a drain needs of the place that it writes to: a sink that takes each batch once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, Protocol

from trigmon.rules.model.reservation import Ordinals

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


_AT_ANY_TIME = "PYTHON_DATA_SOURCE_ERROR"
_OF_PLANS = ("DATA_SOURCE_NOT_FOUND", "CODEC_NOT_AVAILABLE")
_NO_FORMAT = re.compile(r"[^\n]*\n: org\.apache\.spark\.SparkClassNotFoundException: ([^\n]*)")
"""Behind the class of Java's exception stands its text, and a message's text before it nowhere."""


class SinkError(Exception):
    """The sink cannot take the batch, whatever its messages are. The text names the sink and the remedy."""


class BatchRefusedError(RuntimeError):
    """A batch that the sink never takes, since it was asked to refuse it. The text names it."""


@contextmanager
def plan_errors(what: str) -> Iterator[None]:
    """Makes an error of Spark's planning one of the sink: a frame is planned by its columns, not by its messages."""
    try:
        yield
    except Exception as error:
        why = _of_plan(error).strip()
        if not why:
            raise
        raise SinkError(f"{what}: {why.splitlines()[0]}") from error


def _of_plan(error: Exception) -> str:
    """Returns what an error of planning says, empty for any other.

    An unknown format, and a codec that there is not, are no AnalysisException of Spark's. What a data source in Python
    raises is one, at a commit too.
    """
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import AnalysisException, PySparkException

    condition = (isinstance(error, PySparkException) and error.getCondition()) or ""
    if condition.startswith(_AT_ANY_TIME):
        return ""
    if isinstance(error, AnalysisException) or condition.startswith(_OF_PLANS):
        return str(error)
    found = _NO_FORMAT.match(str(error)) if isinstance(error, Py4JJavaError) else None
    return found[1] if found else ""


class BatchName(NamedTuple):
    """A batch, or a part of one over which jobs died, as a sink knows it.

    ``application`` is who writes it: a consumer of a queue of a queue manager. Its batches are written one behind the
    other, and ``number`` rises from each to the next; the parts of a batch, which have a ``part``, all have its number.
    ``id`` is unique and fit for a file's name: the same in every job that comes to this batch, and another for each
    part.
    """

    application: str
    number: int
    id: str
    part: Ordinals | None = None


def column_names(given: str | Sequence[str]) -> list[str]:
    """Returns the names of columns; a text is one name."""
    return [given] if isinstance(given, str) else list(given)


class Sink(Protocol):
    """A place that takes each batch once, wherever a job is killed, and however many jobs write the same one."""

    def check(self) -> None:
        """Raises SinkError, before anything is taken from the queue, where the sink cannot be written to."""

    def write(self, frame: DataFrame, batch: BatchName) -> bool:
        """Writes a batch whole and durably. Returns False when the sink has it already.

        Raises BatchRefusedError for one that :meth:`refuse` has refused, and SinkError.
        """

    def refuse(self, batch: BatchName) -> bool:
        """Makes the sink refuse a batch from now on, from any job. Returns False when the sink has it already."""

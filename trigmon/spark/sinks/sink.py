"""What a drain needs of the place that it writes to: a sink that takes each batch once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from trigmon.rules.model.reservation import Ordinals

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class SinkError(Exception):
    """The sink cannot take the batch, whatever its messages are. The text names the sink and the remedy."""


class BatchRefusedError(RuntimeError):
    """A batch that the sink never takes, since it was asked to refuse it. The text names it."""


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

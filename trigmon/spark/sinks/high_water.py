"""What a table remembers of a consumer's batches: one number, which only rises.

Batches of an application are written one behind the other, each with a higher number than all before it. A table
therefore keeps the last one alone, under the application's name: twice its number when it was written, and one more
when it was refused. A lower batch was written before or was refused: in either case it is never written from now on.

The parts of a batch over which jobs died all have its number, and are not written in order. So each is remembered under
a name of its own; there are few.
"""

from __future__ import annotations

import os
from enum import Enum

from trigmon.spark.sinks.sink import BatchName, BatchRefusedError

BATCH, ATTEMPT = "trigmon.batch", "trigmon.attempt"
"""What a commit says of itself: the batch's id, and which attempt at it made the commit."""
MOST_CONFLICTS = 50
"""So often a commit is repeated. Each conflict is a commit of another writer."""


class Known(Enum):
    """What a table knows of a batch."""

    NEW = "it was neither written nor refused"
    WRITTEN = "it is in the table"
    REFUSED = "the table never takes it from now on"


def key_of(batch: BatchName) -> str:
    """Returns the name under which a table remembers the batch."""
    return batch.application if batch.part is None else f"{batch.application}/{batch.id}"


def written_mark(batch: BatchName) -> int:
    """Returns what a table remembers when it takes a batch."""
    return 2 * (batch.number if batch.part is None else 1)


def refused_mark(batch: BatchName) -> int:
    """Returns what a table remembers when it refuses a batch."""
    return written_mark(batch) + 1


def known(mark: int | None, batch: BatchName) -> Known:
    """Returns what a table with this mark under the batch's key, None where it has none, knows of the batch."""
    if mark is None or mark < written_mark(batch):
        return Known.NEW
    return Known.WRITTEN if mark == written_mark(batch) else Known.REFUSED


def check_not_refused(state: Known, table: str, batch: BatchName) -> None:
    """Raises BatchRefusedError for a batch that the table never takes from now on."""
    if state is Known.REFUSED:
        raise BatchRefusedError(
            f"{table} takes batch {batch.number} ({batch.id}) of {batch.application} no more: it has a later one, or "
            "has refused this one. If the queue manager was made anew, name another consumer"
        )


def new_attempt() -> str:
    """Returns a name for an attempt to write a batch. By it a writer knows its own commit, whose answer was lost."""
    return os.urandom(8).hex()

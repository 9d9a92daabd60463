"""Changes of handles and connections. None is stored: a restart closes every handle and ends every connection."""

from __future__ import annotations

from trigmon.mq.descriptors import MessageDescriptor
from trigmon.rules.model.change import VOLATILE, Change
from trigmon.rules.model.group_position import Place, Side
from trigmon.rules.model.handles import ConnectionFacts, HandleFacts, PutPlan
from trigmon.rules.model.stored_messages import Cursor


class StandingChange(Change, frozen=True):
    """A change of state that is in memory alone."""

    durability = VOLATILE


class OpenHandle(StandingChange, frozen=True):
    """An object is opened."""

    handle: HandleFacts


class CloseHandle(StandingChange, frozen=True):
    """An object is closed."""

    handle: int


class MoveCursor(StandingChange, frozen=True):
    """A browse has moved on."""

    handle: int
    cursor: Cursor


class LockMessage(StandingChange, frozen=True):
    """A handle has locked the message it browsed, by its rows: no other handle sees it. Forgotten at restart."""

    handle: int
    q_name: str
    numbers: tuple[int, ...]

    @property
    def written_to(self) -> str:
        """Returns the message's queue."""
        return self.q_name


class UnlockMessage(StandingChange, frozen=True):
    """A handle unlocks the message it has locked, if that is still there."""

    handle: int
    q_name: str

    @property
    def written_to(self) -> str:
        """Returns the message's queue."""
        return self.q_name

    @property
    def wakes(self) -> tuple[str, ...]:
        """Returns the message's queue."""
        return (self.q_name,)


class SetPlace(StandingChange, frozen=True):
    """A handle stands elsewhere in a group: by a put or get of a unit of work, whose backout takes it back, or not."""

    handle: int
    side: Side
    place: Place | None
    unit_id: int = 0


class SaveContext(StandingChange, frozen=True):
    """The context of the message last got through a handle is kept, to be passed on; None: there is none."""

    handle: int
    context: MessageDescriptor | None


class KeepPutPlan(StandingChange, frozen=True):
    """A handle keeps the plan of a put, for the next of its kind."""

    handle: int
    plan: PutPlan


class Connect(StandingChange, frozen=True):
    """A connection is made."""

    connection: ConnectionFacts


class DropConnection(StandingChange, frozen=True):
    """A connection is gone, its handles closed and its unit ended before."""

    connection: int

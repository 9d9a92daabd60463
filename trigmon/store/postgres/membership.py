"""One member's way into its group on PostgreSQL: the shared half of its turns, each one transaction."""

from __future__ import annotations

from collections.abc import Sequence

from trigmon.mq.attributes import AnyDefinition
from trigmon.mq.enums import ObjectType
from trigmon.rules import changes as c
from trigmon.rules.facts import Decided, Found, HandleFacts, Moved, Selection
from trigmon.rules.shared import SharedQueue


class PostgresMembership:
    """See :class:`trigmon.qmgr.two_stores.SharedHalf`; and what a daemon does beside its turns.

    One session, used by one thread at a time. Every method may raise StoreBroken, and Fenced where another process
    took this member's name, or another member recovered it: then it must end, and start again.
    """

    member: str
    group_name: str

    # -- beside the turns -------------------------------------------------------------------------------

    def take(self) -> bool:
        """Makes this process the one that is this member, with a new epoch; False while another process is.

        :meth:`open` takes by itself, and waits for a lease to be over; raises DirectoryInUse.
        """
        raise NotImplementedError

    def holder(self) -> str:
        """The process that is this member now, for a person."""
        raise NotImplementedError

    @property
    def beat_s(self) -> float:
        """How often :meth:`beat` is to be called."""
        raise NotImplementedError

    def beat(self) -> None:
        """Says that this member lives, by the database's clock. Not within a turn. Raises Fenced."""
        raise NotImplementedError

    def dead(self) -> list[str]:
        """Members that serve no more and were not recovered: their lease is over, or their session is gone."""
        raise NotImplementedError

    def recover(self, member: str) -> bool:
        """Recovers a member that is dead by the database's clock; False where it lives, or nothing was left of it.

        Uncommitted puts are gone, uncommitted gets are back with their backout counts raised, what it had open is
        closed, its roles and locks are free. Not within a turn.
        """
        raise NotImplementedError

    def fileno(self) -> int:
        """The session's socket: readable when a bell may have come, for an event loop that is not in a turn."""
        raise NotImplementedError

    def rang(self) -> bool:
        """Whether another member has changed something shared since this was asked; then a turn is due. No trip."""
        raise NotImplementedError

    # -- SharedHalf: see there --------------------------------------------------------------------------

    def open(self) -> Sequence[Decided]:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError

    def abandon(self) -> None:
        raise NotImplementedError

    def begin(self) -> None:
        raise NotImplementedError

    def mark(self) -> None:
        raise NotImplementedError

    def undo(self) -> None:
        raise NotImplementedError

    def end(self) -> None:
        raise NotImplementedError

    def changed(self) -> Moved:
        raise NotImplementedError

    def takes_role(self, role: str, now: int, until_ms: int) -> bool:
        raise NotImplementedError

    def queue(self, name: str) -> SharedQueue | None:
        raise NotImplementedError

    def definition(self, object_type: ObjectType, name: str) -> AnyDefinition | None:
        raise NotImplementedError

    def find(self, selection: Selection) -> Found:
        raise NotImplementedError

    def apply(self, change: c.AnyChange, handle: HandleFacts | None = None) -> None:
        raise NotImplementedError

    def end_unit(self, change: c.EndUnit, q_names: Sequence[str]) -> None:
        raise NotImplementedError

"""What the manager asks of a store: a turn, and in it facts, find and apply.

A turn is a batch of calls from many clients that becomes durable at once, at :meth:`Store.end`. Each call begins
with :meth:`Store.mark`; :meth:`Store.undo` takes that call back whole. What facts become after changes is the
arithmetic of :mod:`trigmon.rules.model.state`, one copy for all stores; a store only keeps the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from trigmon.rules.model.changes import AnyChange
from trigmon.rules.model.facts import Facts, Wants
from trigmon.rules.model.shared_view import Moved
from trigmon.rules.model.stored_messages import Found, Selection


class StoreBroken(Exception):
    """The store failed in the middle of something: the outcome is unknown, so nothing may be answered any more.

    It is told in one line: a database says why in several, for a terminal.
    """

    def __str__(self) -> str:
        return " ".join(super().__str__().split())


class Lost(StoreBroken):
    """The session with a store on another machine is over. What it had not committed is not, and another may go on."""


class Fenced(Lost):
    """Another process has taken the data over: nothing of this one's turn was written, and nothing will be."""


class NotEntered(Exception):
    """A call needs the group's store, which the turn has not entered, or has to leave and enter anew.

    The call is taken back; after :meth:`Store.enter`, and what others did there, it begins again.
    """


class DirectoryInUse(Exception):
    """Another process has this data open."""


class Unreachable(Lost):
    """The store is on another machine, and nothing of it is to be had now."""


class Unfit(Lost):
    """The store is on another machine, which answers and will not do as it is now; the text says why."""


class MayLose(Unfit):
    """What the store answers may not last, and its owner has not said that he puts up with that."""


class AnothersStore(Exception):
    """The data is another queue manager's."""


class StoreLost(Exception):
    """Something that was acknowledged is gone. A person has to say whether to go on without it."""


class StoreTooNew(Exception):
    """The data was written by a later version of trigmon."""


class Store(Protocol):
    """One queue manager's store. Every method may raise StoreBroken."""

    def open(self, q_mgr_name: str, now: int) -> int:
        """Takes the data up again and returns the first free number for messages, units and handles.

        Definitions and persistent messages are there; messages that are not persistent are gone, units in flight
        are backed out with the backout count raised. Raises AnothersStore, DirectoryInUse, StoreTooNew.
        """

    def keep_time(self, said: str, *, must: bool = False) -> bool:
        """Keeps what the clock needs to go on after a restart, in a write that happens anyway; says whether it did.

        ``must``: also where nothing else is written.
        """

    @property
    def is_in_group(self) -> bool:
        """Whether the queue manager is a member of a group; otherwise :meth:`changed` need not be asked."""

    def begin(self) -> None:
        """A turn begins."""

    def enter(self) -> None:
        """From here to its end nothing moves in the group but by the turn's own calls; asked for by NotEntered.

        What was done before in the turn may be durable when this returns.
        """

    def changed(self) -> Moved:
        """What moved in the group since this was last asked, by others before the turn or by its own calls.

        NOTHING_MOVED itself where nothing did.
        """

    def takes_role(self, role: str, now: int, until_ms: int) -> bool:
        """Whether this queue manager does from now on, until then, what one member of its group does for all."""

    def mark(self) -> None:
        """A call begins: :meth:`undo` goes back to here."""

    def undo(self) -> None:
        """The call is taken back, rows and facts."""

    def facts(self, wants: Wants, is_wide: bool) -> Facts:
        """The neighbourhood of a call, the same cost at any depth; ``is_wide`` adds what commands ask for."""

    def find(self, selection: Selection) -> Found:
        """The messages a call looks for, in get order, by an indexed look-up."""

    def apply(self, changes: Sequence[AnyChange], can_be_undone: bool) -> None:
        """Writes the changes of one decision; ``can_be_undone`` says that more may follow within the same call.

        Without it nothing follows, and :meth:`undo` is not called for this call any more.
        """

    def end(self) -> None:
        """The turn is durable when this returns."""

    def forget_outcomes(self, before_ms: int) -> None:
        """In a turn: forgets outcomes of clients that are gone and had no unit of work since; a slice of them.

        The next time it goes on behind that, and from the start again when it has been through.
        """

    @property
    def has_leftovers(self) -> bool:
        """Whether rows are still to be removed that no call can meet, or rewritten that a unit's end made available."""

    def remove_leftovers(self) -> None:
        """In a turn: removes, or rewrites, a slice of them."""

    def idle(self) -> None:
        """Nothing is going on: time for upkeep."""

    def close(self) -> None:
        """The orderly end."""

    def abandon(self) -> None:
        """Lets go at once, as a killed process would."""

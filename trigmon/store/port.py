"""The store's interface: a queue manager reads facts and messages from a store and writes changes, in turns.

A turn is a batch of calls from many clients. It becomes durable at once, at :meth:`Store.end`. Each call begins with
:meth:`Store.mark`; :meth:`Store.undo` undoes that call. :mod:`trigmon.rules.model.state` computes how changes alter the
facts, one copy for all stores; a store only keeps the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from trigmon.rules.model.changes import AnyChange
from trigmon.rules.model.facts import Facts, Wants
from trigmon.rules.model.queue_facts import QueueFacts
from trigmon.rules.model.shared_view import Moved
from trigmon.rules.model.stored_messages import Found, Selection


class StoreBroken(Exception):
    """The store failed during an operation. The outcome is unknown, so the queue manager must not answer any call.

    Its text is one line; databases report errors in several.
    """

    def __str__(self) -> str:
        return " ".join(super().__str__().split())


class Lost(StoreBroken):
    """The session with a remote store has ended. Its uncommitted work is undone; another process may take over."""


class Fenced(Lost):
    """Another process has taken over the data. This process's turn was not written and no later one will be."""


class NotEntered(Exception):
    """A call needs the group's store, but its turn has not entered it, or must leave it and enter again.

    The call is undone. After :meth:`Store.enter`, and once the changes of other members are known, it is repeated.
    """


class DirectoryInUse(Exception):
    """Another process has this data open."""


class Unreachable(Lost):
    """The remote store cannot be reached, or its session was lost."""


class Unfit(Lost):
    """The remote store answers but cannot be used in its present state; the text gives the reason."""


class MayLose(Unfit):
    """The database is not durable on failover (no synchronous standby, or fsync off) and accept_loss is not set."""


class AnothersStore(Exception):
    """The data belongs to another queue manager, another group or another program."""


class StoreLost(Exception):
    """Acknowledged data is missing. An operator must decide whether to start without it (``--accept-loss``)."""


class UnsupportedVersion(Exception):
    """The data was written by another version of trigmon: a later one, or one before the first release."""


class FileCopy(Protocol):
    """The store's file, held as it is so that it can be copied while the queue manager serves."""

    @property
    def is_held(self) -> bool:
        """Whether the file is still as it was at :meth:`begin`; a disk that is nearly full ends the hold."""

    def begin(self) -> int:
        """Makes the turn so far durable, all of it in the file; returns its bytes. Raises StorageMediumFull."""

    def read(self, offset: int, count: int) -> bytes:
        """Returns bytes of the file, fewer at its end."""

    def end(self) -> None:
        """Ends the hold, if there is one."""


class Store(Protocol):
    """One queue manager's store. Every method may raise StoreBroken."""

    @property
    def copy(self) -> FileCopy | None:
        """The copy of the store's file; None for a store that is no file."""

    def open(self, q_mgr_name: str, now: int) -> int:
        """Opens the data, recovers it, and returns the first free number for messages, units and handles.

        Definitions and persistent messages are kept; nonpersistent messages are removed. Units of work in flight are
        backed out, and the backout counts of the messages they got are raised. Raises AnothersStore, DirectoryInUse,
        UnsupportedVersion.
        """

    def keep_time(self, text: str, *, must: bool = False) -> bool:
        """Writes the clock's state for the next start, together with another write; returns whether it was written.

        ``must``: also when nothing else is written.
        """

    @property
    def is_in_group(self) -> bool:
        """Whether the queue manager is a member of a group; otherwise :meth:`changed` need not be asked."""

    def begin(self) -> None:
        """Begins a turn."""

    def enter(self) -> None:
        """Enters the group's store: until the turn ends only the turn's own calls change shared objects.

        Called after NotEntered. What the turn did before may be durable when this returns.
        """

    def changed(self) -> Moved:
        """Returns the shared objects that changed since the last call of this method.

        Other members changed them before the turn, or the turn's own calls did. The object NOTHING_MOVED if none did.
        """

    def takes_role(self, role: str, now: int, until_ms: int) -> bool:
        """Returns whether this queue manager holds the role of its queue-sharing group until ``until_ms``.

        One member at a time holds a role, and works for all of them. Without a group, this queue manager always holds
        the role.
        """

    def mark(self) -> None:
        """Begins a call: :meth:`undo` returns to this point."""

    def undo(self) -> None:
        """Undoes the call: its rows and its facts."""

    def facts(self, wants: Wants, is_wide: bool) -> Facts:
        """Returns the facts that a call needs, at a cost that does not depend on queue depth.

        ``is_wide`` adds the facts for commands.
        """

    def local_queue(self, q_name: str) -> QueueFacts | None:
        """Returns a local queue as it is now; None where there is none."""

    def find(self, selection: Selection) -> Found:
        """Returns the messages that match the selection, in get order, by an indexed look-up."""

    def apply(self, changes: Sequence[AnyChange], can_be_undone: bool) -> None:
        """Writes the changes of one decision.

        ``can_be_undone``: more changes of the same call may follow. Otherwise none follow and :meth:`undo` is not
        called for this call.
        """

    def end(self) -> None:
        """Ends the turn: it is durable when this returns."""

    def forget_outcomes(self, before_ms: int) -> None:
        """Deletes, within a turn, outcomes of disconnected clients without a unit of work since ``before_ms``.

        Deletes one slice. The next call continues behind it, and begins again after the last client.
        """

    @property
    def has_leftovers(self) -> bool:
        """Whether rows remain of deleted queues or of ended units of work, to be removed or rewritten."""

    def remove_leftovers(self) -> None:
        """Removes or rewrites, within a turn, one slice of these rows."""

    def idle(self) -> None:
        """Performs maintenance; called when no call waits."""

    def close(self) -> None:
        """Writes what is outstanding and closes the store."""

    def abandon(self) -> None:
        """Closes the store at once without writing, as if the process had been killed."""

"""What the queue manager knows of the commands on SYSTEM.ADMIN.COMMAND.QUEUE, for the command server.

Who put a command is known when it is put, so it is kept here, in memory, until the message leaves the queue. It is kept
by the message's number, which no other message ever gets, and which no program chooses. What is not kept here is
nobody's command.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, ClassVar

import msgspec

from trigmon.mq.attributes import QueueManagerDefinition
from trigmon.mq.compatibility import CommandServerControl
from trigmon.mq.descriptors import MessageDescriptor
from trigmon.rules.model.events import CommandPut
from trigmon.rules.model.handles import ConnectionFacts

if TYPE_CHECKING:
    from trigmon.qmgr.manager import Answer


class CommandDropped(msgspec.Struct, frozen=True):
    """A message on the command queue was taken away without an answer."""

    name: ClassVar[str] = "command_dropped"
    descriptor: MessageDescriptor
    user: str  # whose it was, blank for nobody's
    why: str


class CommandRefused(msgspec.Struct, frozen=True):
    """A command was refused, and answered so. ``user`` is blank for nobody's, ``command`` for what is no command."""

    name: ClassVar[str] = "command_refused"
    command: str
    object_name: str
    user: str
    application: str
    reason: int
    why: str


class CommandFailed(msgspec.Struct, frozen=True):
    """A bug: a command was answered with MQRCCF_UNEXPECTED_ERROR."""

    name: ClassVar[str] = "command_failed"
    command: int
    error: BaseException


class WaitingCommands:
    """The commands of one queue manager.

    ``serve`` performs some and returns what may now be answered; None where nobody does. ``is_due``: it is to be called
    as soon as the turn is over. ``is_on`` is the attribute SCMDSERV. ``report`` takes an event for the log.
    ``taken_of``: whose the command is that was got last under syncpoint, None for nobody's.
    """

    def __init__(self, report: Callable[[CommandDropped | CommandRefused | CommandFailed], None]) -> None:
        self.report = report
        self._by: dict[int, ConnectionFacts] = {}
        # The numbers that were put in each unit of work, until that ends.
        self._in_units: dict[int, list[int]] = {}
        self.taken_of: ConnectionFacts | None = None
        self.serve: Callable[[], list[Answer]] | None = None
        self.is_on = True
        self.is_due = True

    @property
    def are_waiting(self) -> bool:
        """Whether the command server is to be called."""
        return self.is_due and self.is_on and self.serve is not None

    def switch(self, q_mgr: QueueManagerDefinition) -> None:
        """Turns the command server on or off, as the queue manager's attributes say from now on."""
        self.is_on = q_mgr.command_server_control is CommandServerControl.Q_MGR
        self.is_due = True

    @property
    def known_count(self) -> int:
        """The number of messages of which it is known whose command they are."""
        return len(self._by)

    def note(self, put: CommandPut) -> None:
        """Notes a command that was put; one in a unit of work is due when that is committed."""
        if not put.unit_id:
            self.is_due = True
        if put.by is None:
            return
        self._by[put.number] = put.by
        if put.unit_id:
            self._in_units.setdefault(put.unit_id, []).append(put.number)

    def unit_ended(self, unit_id: int, *, is_committed: bool) -> None:
        """Forgets what was put in a unit of work that was backed out."""
        numbers = self._in_units.pop(unit_id, ())
        if not is_committed:
            self.left(numbers)

    def left(self, numbers: Iterable[int]) -> None:
        """Forgets messages that have left the queue."""
        for number in numbers:
            self._by.pop(number, None)

    def took(self, number: int) -> None:
        """Forgets a message that was got under syncpoint, but for :attr:`taken_of`; a backout makes it nobody's."""
        self.taken_of = self._by.pop(number, None)

    def queue_deleted(self) -> None:
        """Forgets all of them."""
        self._by.clear()

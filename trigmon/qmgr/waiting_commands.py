"""What the queue manager knows of the commands on SYSTEM.ADMIN.COMMAND.QUEUE, for the command server.

Who put a command is known to the connection that did, so it is kept here, in memory, until the command is performed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

import msgspec

from trigmon.mq.attributes import QueueManagerDefinition
from trigmon.mq.compatibility import CommandServerControl
from trigmon.mq.descriptors import MessageDescriptor
from trigmon.rules.model.events import CommandPut
from trigmon.rules.model.handles import ConnectionFacts

if TYPE_CHECKING:
    from trigmon.qmgr.manager import Answer

MOST_KNOWN = 10_000


class CommandDropped(msgspec.Struct, frozen=True):
    """A message on the command queue was taken away without an answer."""

    name: ClassVar[str] = "command_dropped"
    descriptor: MessageDescriptor
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
    """

    def __init__(self, report: Callable[[CommandDropped | CommandFailed], None]) -> None:
        self.report = report
        self._by: dict[bytes, ConnectionFacts | None] = {}
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

    def note(self, put: CommandPut) -> None:
        """Notes a command that was put; one in a unit of work is due when that is committed."""
        if not put.unit_id:
            self.is_due = True
        known = self._by.pop(put.msg_id, put.by)
        if len(self._by) >= MOST_KNOWN:
            del self._by[next(iter(self._by))]
        # Two messages with one id by two connections: whose is whose is not known, so they are nobody's.
        self._by[put.msg_id] = put.by if known is not None and known.connection == put.by.connection else None

    def is_known(self, msg_id: bytes) -> bool:
        """Returns whether a message of this id was put since the start of the queue manager."""
        return msg_id in self._by

    def take(self, msg_id: bytes) -> ConnectionFacts | None:
        """Returns who put a message of this id, and forgets it; None where that is not known."""
        return self._by.pop(msg_id, None)

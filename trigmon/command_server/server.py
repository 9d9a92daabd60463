"""The command server: takes commands from SYSTEM.ADMIN.COMMAND.QUEUE, performs them, and puts the replies.

A command is got under syncpoint, and committed in the turn of its last reply. Most commands take one turn: after a
kill the command is there still, or it is done and answered. What goes in slices, CLEAR and long listings, takes
several turns, with calls of other clients between; after a kill between them the command is there still, and as all
that was put before a start it is nobody's. What a turn does is counted in steps, so that no command makes a turn long.

A command is performed by the calls of the command line, on a connection with the rights of who put it. One of which
that is not known for certain is nobody's: it is answered with MQRC_NOT_AUTHORIZED and not performed.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from trigmon.command_server.command_name import command_name
from trigmon.command_server.escape import escape
from trigmon.command_server.reply_message import APPLICATION, FORMAT_ADMIN, reply_to
from trigmon.mq.calls import Call, Close, Commit, Disconnect, Get, Open, Ping
from trigmon.mq.compatibility import COMMAND_INPUT_Q
from trigmon.mq.descriptors import CCSID_UTF8, MessageDescriptor
from trigmon.mq.enums import GetOption, MsgType, OpenOption
from trigmon.mq.errors import MQError, NotAuthorized
from trigmon.mq.reasons import CompCode, Reason
from trigmon.mq.replies import Counted, Listing, Opened, Refused, Reply, WasGot
from trigmon.pcf.numbers import PcfReason, StructureType
from trigmon.pcf.pcf_commands import refusal, replies
from trigmon.pcf.structures import LAST, PcfError, PcfMessage, pack_message, unpack_message
from trigmon.pcf.texts import OF_Q_MGR, text_codec
from trigmon.qmgr.manager import Answer, QueueManager
from trigmon.qmgr.sessions import ITSELF, Identity, Session
from trigmon.qmgr.waiting_commands import CommandDropped, CommandFailed, CommandRefused
from trigmon.rules.model.handles import ConnectionFacts
from trigmon.rules.model.stored_messages import SLICE
from trigmon.store.port import StoreBroken

COMMAND_COSTS: Final = 16
"""A command takes as long as so many replies: sixteen of them at most are performed in a turn."""
BYTES_PER_STEP: Final = 128
"""Reading so many bytes of a command takes as long as one reply."""
LONGEST_COMMAND: Final = 32_768
"""The longest command, in bytes: it is read in one piece, so it must not take longer than a turn may."""
_TAKE: Final = (GetOption.SYNCPOINT | GetOption.NO_WAIT).value
_NO_NAME: Final = ""
"""The name of dynamic queues by which no queue is made, since it is not allowed: MQRC_DYNAMIC_Q_NAME_ERROR."""


class CommandServer:
    """The command server of one queue manager, from now on called by its housekeeping."""

    def __init__(self, manager: QueueManager) -> None:
        self._manager = manager
        self._commands = manager.housekeeping.commands
        self._commands.serve = self.serve
        self._session: Session | None = None
        self._handle = 0
        self._unit = 0
        self._running: Iterator[None] | None = None
        # What this turn may still do, in steps: a reply, a call, a row that is listed, a message that is cleared.
        self._room = 0

    def serve(self) -> list[Answer]:
        """Performs commands in one turn, as many as fit into a slice, and returns what may now be answered."""
        self._commands.is_due = False
        session = self._session = self._session or self._manager.connect(ITSELF)
        # The call behind the work has the manager wake what waits for the replies.
        return self._manager.turn([(session, 0, Ping())], self._work)

    def _work(self) -> None:
        self._room = SLICE
        while self._room > 0:
            if self._running is None:
                self._room -= COMMAND_COSTS
                self._running = self._next()
            if self._running is None:
                self._rest()
                return
            self._room -= 1
            if next(self._running, self) is self:
                self._running = None
        self._commands.is_due = True

    def _rest(self) -> None:
        """Gives the queue back while nothing waits on it."""
        if self._session is not None:
            self._manager.answer(self._session, Disconnect(), self._now())
        self._session, self._handle = None, 0

    def _next(self) -> Iterator[None] | None:
        """Takes the next command and returns its work; None where there is none, or the queue is not to be read."""
        try:
            if not self._handle:
                opened = self._ask(Open(object_name=COMMAND_INPUT_Q, options=OpenOption.INPUT_SHARED.value))
                assert isinstance(opened, Opened)
                self._handle = opened.handle
            self._unit += 1
            got = self._ask(Get(handle=self._handle, options=_TAKE, unit=self._unit))
        except MQError:
            return None
        assert isinstance(got, WasGot)
        self._room -= min(len(got.data), LONGEST_COMMAND) // BYTES_PER_STEP
        return self._perform(got.descriptor, got.data, self._commands.taken_of)

    def _ask(self, call: Call, session: Session | None = None) -> Reply:
        by = session or self._session
        assert by is not None
        reply = self._manager.answer(by, call, self._now())
        if isinstance(reply, Refused):
            raise MQError.of(reply.reason, reply.about)
        return reply

    def _ask_for(self, sender: Session, call: Call) -> Reply:
        """Makes a call of the command; what it lists and clears counts as steps of the turn."""
        self._room -= 1
        reply = self._ask(call, sender)
        if isinstance(reply, Listing):
            self._room -= len(reply.rows)
        elif isinstance(reply, Counted):
            self._room -= reply.count
        return reply

    def _now(self) -> int:
        return self._manager.clock.now()

    # -- one command ------------------------------------------------------------------------------------------

    def _perform(self, command: MessageDescriptor, data: bytes, by: ConnectionFacts | None) -> Iterator[None]:
        """Performs a command of a connection's, or refuses nobody's; each step is a reply, or a slice of the work."""
        # Not in a finally clause: what is not performed to its end, at the end of the queue manager, is backed out.
        sender = self._manager.connect(_identity_of(by))
        if self._may_be_answered(command, sender):
            yield from self._answered(command, data, sender, is_known=by is not None)
        self._ask(Commit(unit=self._unit))
        if not sender.is_gone:
            self._manager.answer(sender, Disconnect(), self._now())

    def _answered(self, command: MessageDescriptor, data: bytes, sender: Session, *, is_known: bool) -> Iterator[None]:
        ccsid = command.coded_char_set_id
        ccsid = CCSID_UTF8 if ccsid in OF_Q_MGR or text_codec(ccsid) is None else ccsid
        message: PcfMessage | None = None

        def refused(reason: int, why: str) -> None:
            if is_known and reason == Reason.NOT_AUTHORIZED:
                return  # the denied call has a line of its own
            named = ("", "") if message is None else command_name(message)
            by = (sender.identity.user, command.put_appl_name)
            self._commands.report(CommandRefused(*named, *by, reason, why))

        try:
            message = self._read(command, data)
            if not is_known:
                raise NotAuthorized("whose command it is is not known")
            for reply in replies(message, partial(self._ask_for, sender), escape, refused):
                if reply is not None:
                    self._put(command, sender, reply, ccsid)
                if reply is None or reply.control != LAST:
                    yield
        except (PcfError, NotAuthorized) as error:
            refused(int(error.reason), str(error))
            self._put(command, sender, refusal(message.command if message else 0, error), ccsid)
        except StoreBroken:
            raise
        except Exception as error:  # a bug: this command fails, the next is performed
            number = message.command if message else 0
            self._commands.report(CommandFailed(number, error))
            failed = (CompCode.FAILED, int(PcfReason.UNEXPECTED_ERROR))
            self._put(command, sender, PcfMessage(StructureType.RESPONSE, number, *failed, ()), ccsid)

    @staticmethod
    def _read(command: MessageDescriptor, data: bytes) -> PcfMessage:
        """Returns the PCF message. Raises PcfError."""
        if len(data) > LONGEST_COMMAND:
            raise PcfError(PcfReason.MSG_LENGTH_ERROR, f"{len(data)} bytes, where {LONGEST_COMMAND} are allowed")
        if command.format.rstrip() != FORMAT_ADMIN:
            raise PcfError(PcfReason.MD_FORMAT_ERROR, f"format {command.format!r}")
        return unpack_message(data, command.encoding, command.coded_char_set_id)

    def _put(self, command: MessageDescriptor, sender: Session, reply: PcfMessage, ccsid: int) -> None:
        """Puts a reply; where its queue does not take it, it goes to the dead-letter queue."""
        data = pack_message(reply, command.encoding, ccsid)
        try:
            self._ask(reply_to(command, data, ccsid, self._now()))
        except MQError as error:
            self._commands.report(CommandDropped(command, sender.identity.user, f"its reply: {error}"))

    def _may_be_answered(self, command: MessageDescriptor, sender: Session) -> bool:
        """Returns whether the command has a reply queue, and its user may put there; reports one that is dropped."""
        why = ""
        if command.msg_type != MsgType.REQUEST:
            why = f"message type {command.msg_type} is no request"
        elif not sender.identity.administrator:
            why = self._why_no_reply(command, sender)
        if why:
            self._commands.report(CommandDropped(command, sender.identity.user, why))
        return not why

    def _why_no_reply(self, command: MessageDescriptor, sender: Session) -> str:
        """Returns why the user may not have the replies put where they are to go; blank where that is allowed."""
        name = command.reply_to_q
        if command.reply_to_q_mgr not in ("", self._manager.name):
            name = command.reply_to_q_mgr  # the transmission queue
        try:
            # Not a model queue: its open would make a queue, for a reply that is put elsewhere.
            only_there = Open(object_name=name, options=OpenOption.OUTPUT.value, dynamic_q_name=_NO_NAME)
            opened = self._ask(only_there, sender)
        except NotAuthorized as error:
            return f"its replies: {error}"
        except MQError:
            return ""  # the reply goes to the dead-letter queue
        assert isinstance(opened, Opened)
        self._ask(Close(handle=opened.handle), sender)
        return ""


def _identity_of(by: ConnectionFacts | None) -> Identity:
    """Returns the identity that performs a command; nobody's has no user, and may what every user may."""
    if by is None:
        return Identity(client_id="", application=APPLICATION)
    return Identity(
        client_id="",
        application=APPLICATION,
        pid=by.pid,
        user=by.user,
        administrator=by.is_administrator,
        monitor=by.is_monitor,
        setter=by.is_setter,
        groups=by.groups,
    )

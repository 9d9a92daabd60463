"""Any bytes on the command queue: each message is answered or dropped, no command meets a bug, and nothing is lost."""

from __future__ import annotations

import random
from itertools import count
from typing import Any

import pytest

from tests.command_server.commands import (
    command,
    escape,
    integer,
    integer_filter,
    integers,
    read_reply,
    text,
    text_filter,
    texts,
)
from trigmon.command_server.server import CommandServer
from trigmon.mq.calls import Call, Define, Get, Open, Put
from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.enums import OpenOption
from trigmon.mq.replies import Opened, Refused, WasGot
from trigmon.qmgr.clock import VirtualClock
from trigmon.qmgr.manager import QueueManager
from trigmon.qmgr.manager_events import CallFailed, Event, Telling
from trigmon.qmgr.sessions import Identity
from trigmon.qmgr.waiting_commands import CommandFailed
from trigmon.store.memory.store import MemoryStore

NAME = "SYSTEM.DEFAULT.LOCAL.QUEUE"
NUMBERS = (0, 1, -1, 2, 4, 16, 36, 255, 1001, 1002, 1009, 2016, 2**31 - 1, -(2**31))
COMMANDS = [
    command(13, text(2016, "SYSTEM.DEFAULT.*"), integers(1002, 2016, 3), integer_filter(3, 4, 0)),
    command(13, text(2016, NAME), text_filter(2013, 18, "IBM*"), kind=16),
    command(11, text(2016, "NEW"), integer(20, 1), integer(15, 9), text(2013, "described"), integer(1006, 1)),
    command(8, text(2016, "NEW"), integer(20, 1), integer(24, 1)),
    command(12, text(2016, "NEW"), integer(1007, 1)),
    command(9, text(2016, NAME)),
    command(10, text(3001, NAME), text(3002, "COPY"), integer(20, 1)),
    command(18, text(2016, "*")),
    command(41, text(2016, NAME), integer(1103, 1104), integers(1026, 3)),
    command(17, text(2016, NAME)),
    command(2, integers(1001, 1009)),
    command(1, integer(25, 5)),
    command(40),
    command(5, text(2012, "P"), text(2001, "/bin/true"), integer(1006, 1)),
    command(7, text(2012, "*")),
    command(34, text(2010, "N"), texts(2020, "ONE", "TWO"), integer(1006, 1)),
    command(36, text(2010, "*"), text_filter(2020, 10, "ONE")),
    escape("DISPLAY QLOCAL(*) MAXDEPTH"),
    escape("DEFINE QLOCAL(E) REPLACE"),
]


class Failing(Telling):
    """Raises what is a bug."""

    def tell(self, event: Event) -> None:
        if isinstance(event, CallFailed | CommandFailed):
            raise event.error


class Queues:
    """A queue manager with its command server, and an administrator's connection."""

    def __init__(self, store: MemoryStore | None = None) -> None:
        self.store = store or MemoryStore()
        self.manager = QueueManager("QM1", self.store, VirtualClock(), Failing())
        CommandServer(self.manager)
        self.session = self.manager.connect(Identity(client_id="a", application="any", administrator=True, user="root"))
        self._numbers = count(1)
        self._reader = self.did(Define(object_type="QLOCAL", name="R", replace=True)) and 0

    def did(self, call: Call) -> Any:
        """Returns the reply of a call, and performs no command."""
        number = next(self._numbers)
        answers = self.manager.turn([(self.session, number, call)])
        return next(answer.reply for answer in answers if answer.sequence == number)

    def put(self, data: bytes, **fields: Any) -> None:
        of = {"msg_type": 1, "format": "MQADMIN", "reply_to_q": "R"} | fields
        self.did(Put(q_name="SYSTEM.ADMIN.COMMAND.QUEUE", descriptor=MessageDescriptor(**of), data=data))

    def serve(self) -> None:
        while self.manager.housekeeping.is_scanning:
            self.manager.housekeeping.scan()

    def replies(self) -> list[WasGot]:
        if not self._reader:
            opened = self.did(Open(object_name="R", options=OpenOption.INPUT_SHARED.value))
            assert isinstance(opened, Opened)
            self._reader = opened.handle
        found = []
        while not isinstance(got := self.did(Get(handle=self._reader)), Refused):
            found.append(got)
        return found


def mutated(chance: random.Random) -> bytes:
    """Returns a command with some of its bytes or integers changed, cut, doubled or put elsewhere."""
    data = bytearray(chance.choice(COMMANDS))
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(data) or 1)
        way = chance.randrange(6)
        if way == 0:
            data[at : at + 1] = bytes([chance.randrange(256)])
        elif way in (1, 2):
            at -= at % 4
            data[at : at + 4] = chance.choice(NUMBERS).to_bytes(4, "little", signed=True)
        elif way == 3:
            del data[at:]
        elif way == 4:
            data[at:at] = chance.choice(COMMANDS)[36:]
        else:
            data += chance.randbytes(chance.randrange(9))
    return bytes(data)


def play(messages: int, seed: int) -> None:
    chance = random.Random(seed)
    queues = Queues()
    for _ in range(messages):
        ccsid, encoding = chance.choice((0, 1208, 819, 500, 77)), chance.choice((546, 546, 546, 273, 0))
        queues.put(mutated(chance), coded_char_set_id=ccsid, encoding=encoding)
        queues.serve()
        found = queues.replies()
        order = ">" if encoding == 273 else "<"
        codec = {819: "latin-1", 500: "cp500"}.get(ccsid, "utf-8")
        read = [read_reply(each.data, order, codec) for each in found]
        assert [each.control for each in read] == [0] * (len(read) - 1) + [1]
        assert [each.sequence for each in read] == list(range(1, len(read) + 1))


def test_thousands_of_changed_commands_are_each_answered_once_and_meet_no_bug():
    play(3000, seed=20261125)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_a_million_changed_commands_are_each_answered_once_and_meet_no_bug(seed):
    play(50_000, seed)


def test_a_listing_that_a_crash_cuts_short_is_refused_behind_it():
    queues = Queues()
    for at in range(600):
        queues.did(Define(object_type="QLOCAL", name=f"MANY.{at:03d}"))
    queues.put(command(13, text(2016, "MANY.*"), integers(1002, 15)), persistence=1)
    queues.manager.housekeeping.scan()
    sent = len(queues.replies())
    assert 0 < sent < 600
    queues.store.abandon()
    queues = Queues(queues.store)
    queues.serve()
    assert [read_reply(each.data).reason for each in queues.replies()] == [2035]
    queues.serve()
    assert queues.replies() == []


def test_a_command_of_one_turn_is_there_still_or_is_done_and_answered():
    for turns in (0, 1):
        queues = Queues()
        queues.put(command(11, text(2016, "NEW"), integer(20, 1)), persistence=1)
        for _ in range(turns):
            queues.manager.housekeeping.scan()
        is_done = queues.store.local_queue("NEW") is not None
        left = queues.store.local_queue("SYSTEM.ADMIN.COMMAND.QUEUE")
        assert left is not None
        assert (is_done, left.depth, left.uncommitted_gets) == (bool(turns), 1 - turns, 0)
        assert len(queues.replies()) == turns


def test_a_turn_performs_sixteen_commands_at_most_so_that_no_call_waits_long():
    queues = Queues()
    for _ in range(40):
        queues.put(command(40))
    queues.manager.housekeeping.scan()
    assert 0 < len(queues.replies()) <= 16
    queues.serve()
    assert len(queues.replies()) >= 24

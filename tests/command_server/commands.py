"""Programs that put commands in PCF, by the bytes that the manual gives, to a queue manager in this process."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

from trigmon.mq.calls import Call, Define, Get, Open, Put
from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.enums import OpenOption
from trigmon.mq.errors import NoMsgAvailable
from trigmon.mq.replies import Opened, WasGot, WasPut
from trigmon.qmgr.sessions import Session
from trigmon.simulate.in_process import InProcess

COMMAND_QUEUE, REPLIES = "SYSTEM.ADMIN.COMMAND.QUEUE", "REPLIES"
LITTLE, BIG = 546, 273


@dataclass(frozen=True)
class Reply:
    """A reply message as a program reads it."""

    kind: int
    command: int
    sequence: int
    control: int
    comp_code: int
    reason: int
    values: dict[int, Any]
    order: list[int]
    descriptor: MessageDescriptor


def command(number: int, *parameters: bytes, order: str = "<", kind: int = 1, control: int = 1) -> bytes:
    """Returns a command message."""
    return struct.pack(f"{order}9i", kind, 36, 3, number, 1, control, 0, 0, len(parameters)) + b"".join(parameters)


def integer(number: int, value: int, order: str = "<") -> bytes:
    return struct.pack(f"{order}4i", 3, 16, number, value)


def integers(number: int, *values: int, order: str = "<") -> bytes:
    return struct.pack(f"{order}{4 + len(values)}i", 5, 16 + 4 * len(values), number, len(values), *values)


def text(number: int, value: str, order: str = "<", ccsid: int = 0, codec: str = "utf-8") -> bytes:
    raw = value.encode(codec)
    padded = raw.ljust(-(-len(raw) // 4) * 4, b"\0")
    return struct.pack(f"{order}5i", 4, 20 + len(padded), number, ccsid, len(raw)) + padded


def texts(number: int, *values: str, order: str = "<") -> bytes:
    width = max(map(len, values), default=0)
    raw = b"".join(value.encode().ljust(width) for value in values)
    padded = raw.ljust(-(-len(raw) // 4) * 4, b"\0")
    return struct.pack(f"{order}6i", 6, 24 + len(padded), number, 0, len(values), width) + padded


def byte_string(number: int, value: bytes) -> bytes:
    padded = value.ljust(-(-len(value) // 4) * 4, b"\0")
    return struct.pack("<4i", 9, 16 + len(padded), number, len(value)) + padded


def integer_filter(number: int, operator: int, value: int) -> bytes:
    return struct.pack("<5i", 13, 20, number, operator, value)


def text_filter(number: int, operator: int, value: str) -> bytes:
    raw = value.encode()
    padded = raw.ljust(-(-len(raw) // 4) * 4, b"\0")
    return struct.pack("<6i", 14, 24 + len(padded), number, operator, 0, len(raw)) + padded


def escape(mqsc: str) -> bytes:
    """Returns an Escape command."""
    return command(38, integer(1017, 1), text(3014, mqsc))


def read_reply(data: bytes, order: str = "<", codec: str = "utf-8", descriptor: Any = None) -> Reply:
    """Returns a reply from its bytes, without the code that wrote them."""
    kind, _, _, number, sequence, control, comp_code, reason, count = struct.unpack_from(f"{order}9i", data)
    at, values, numbers = 36, {}, []
    for _ in range(count):
        form, length, parameter = struct.unpack_from(f"{order}3i", data, at)
        numbers.append(parameter)
        if form == 3:
            (values[parameter],) = struct.unpack_from(f"{order}i", data, at + 12)
        elif form == 4:
            (size,) = struct.unpack_from(f"{order}i", data, at + 16)
            values[parameter] = data[at + 20 : at + 20 + size].decode(codec).rstrip()
        elif form == 5:
            (items,) = struct.unpack_from(f"{order}i", data, at + 12)
            values[parameter] = list(struct.unpack_from(f"{order}{items}i", data, at + 16))
        elif form == 6:
            items, width = struct.unpack_from(f"{order}2i", data, at + 16)
            begins = range(at + 24, at + 24 + items * width, max(width, 1)) if width else []
            values[parameter] = [data[begin : begin + width].decode(codec).rstrip() for begin in begins]
        elif form == 9:
            (size,) = struct.unpack_from(f"{order}i", data, at + 12)
            values[parameter] = data[at + 16 : at + 16 + size]
        else:
            raise AssertionError(f"structure type {form}")
        at += length
    assert at == len(data)
    return Reply(kind, number, sequence, control, comp_code, reason, values, numbers, descriptor)


class Program:
    """A program of one user with its own reply queue."""

    def __init__(
        self, stage: InProcess, user: str = "root", *, administrator: bool = True, replies: str = REPLIES
    ) -> None:
        self.stage = stage
        self.replies = replies
        self.session: Session = stage.connect("a program", administrator=administrator, user=user)
        stage.command("QM1", Define(object_type="QLOCAL", name=replies, replace=True))

    def ask(self, call: Call) -> Any:
        return self.stage.ask(self.session, call)

    def put(self, data: bytes, **fields: Any) -> bytes:
        """Puts a command, and returns its MsgId."""
        options = fields.pop("options", 0)
        of = {"msg_type": 1, "format": "MQADMIN", "reply_to_q": self.replies, "encoding": LITTLE} | fields
        put = self.ask(Put(q_name=COMMAND_QUEUE, descriptor=MessageDescriptor(**of), data=data, options=options))
        assert isinstance(put, WasPut)
        return put.msg_id

    def got(self, q_name: str = "") -> list[WasGot]:
        """Returns all messages of a queue, by default the replies."""
        opened = self.ask(Open(object_name=q_name or self.replies, options=OpenOption.INPUT_SHARED.value))
        assert isinstance(opened, Opened)
        found = []
        try:
            while True:
                found.append(self.ask(Get(handle=opened.handle)))
        except NoMsgAvailable:
            return found

    def does(self, data: bytes, order: str = "<", codec: str = "utf-8", **fields: Any) -> list[Reply]:
        """Puts a command and returns its replies."""
        msg_id = self.put(data, **fields)
        found = self.got()
        assert all(each.descriptor.correl_id == msg_id for each in found)
        return [read_reply(each.data, order, codec, each.descriptor) for each in found]

    def one(self, data: bytes, **fields: Any) -> Reply:
        """Puts a command and returns its one reply."""
        (reply,) = self.does(data, **fields)
        return reply

"""Whatever a client may send is answered alike by every store: with a reply, or with a refusal that means something.

Each call starts from one that is right; then one field at a time takes each value that could break something.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_type_hints

import msgspec
import pytest

from tests.wire.values import CALLS
from tests.worlds import STORES, World
from trigmon.mq.calls import (
    Alter,
    BeginBackup,
    BridgeState,
    Call,
    Caps,
    Clear,
    CopyState,
    Get,
    GetMany,
    LostServer,
    NewRuns,
    Open,
    Put,
    Reserve,
    Sieve,
    WatchState,
)
from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.enums import OpenOption
from trigmon.mq.replies import Refused, Reply

Q = "APP.Q"
WIDE = OpenOption.INPUT_SHARED | OpenOption.OUTPUT | OpenOption.BROWSE | OpenOption.INQUIRE | OpenOption.SET
MINE = 777
AS_IT_WAS = {"inhibit_get": "enabled", "inhibit_put": "enabled", "max_q_depth": 999_999}
NUMBERS = [0, 1, 2, 3, 8, 0x20, -1, -2, 2**31 - 1, 2**31, -(2**31) - 1, 2**63 - 1, 2**63, 2**64 - 1, -(2**63)]
TEXTS = [
    "",
    Q,
    "ALIAS.Q",
    "REMOTE.Q",
    "MODEL.Q",
    "NONE",
    "queue",
    "QLOCAL",
    "QMGR",
    "*",
    "A*B",
    "\0",
    "é" * 30,
    "x" * 5000,
]
RUN_IDS = ["0", "", "x", "f" * 16, "f" * 17, "-1"]
ANY = [None, True, 1.5, 2**64 - 1, -(2**63), "on", "x" * 5000, "\0", b"\0", [], {}, {"a": [b"x"]}]
EDGES: dict[Any, list[Any]] = {
    int: NUMBERS,
    str: TEXTS,
    bool: [False, True],
    bytes: [b"", b"x", b"\0" * 24, b"\xff" * 24, b"x" * 25, b"x" * 70_000],
    list[LostServer]: [[], [LostServer("m", 0, -1)], [LostServer("\0", 2**63, 2**63, "w" * 99)] * 300],
    list[BridgeState]: [[], [BridgeState("B", "I@QM9")], [BridgeState("\0", "\0", "w" * 99, -(2**63))] * 300],
    list[WatchState]: [[], [WatchState(name="W")], [WatchState(name="\0", files_taken=2**63, problem="w" * 99)] * 300],
    list[str]: [[], ["current_q_depth"], ["none"], ["\0"], ["trigger_type"] * 300],
    list[str | int]: [[], [3], [2016, 28], [0], [-1], [2**31], ["current_q_depth", 3], ["none"], [28] * 300],
    list[bytes]: [[], [b""], [b"x"] * 300],
    dict[str, Any]: [
        {},
        *({name: v} for v in ANY for name in ("trigger_control", "max_q_depth", "description", "state", "q_name", "")),
    ],
    dict[str | int, Any]: [
        {},
        *({name: v} for v in ANY for name in ("trigger_control", 24, 28, 29, 2023, 9, 0, 2**31, "max_q_depth", "")),
    ],
    list[int]: [[], [0], [5, 1], [0, 2**63 - 1], [0, 2**63], [2**64 - 1, -1], [1, 2, 3], [1] * 300],
    MessageDescriptor: [],
    Sieve: [],
    CopyState: [
        CopyState(name="Q@QM9", q_name="Q"),
        CopyState(name="\0", q_name="\0", copied=2**63, left=-(2**63), rate=1e300, problem="w" * 99),
    ],
    Caps: [],
    NewRuns | None: [None, *(NewRuns(text, text, after, [6]) for text in ("m", "x" * 70_000) for after in RUN_IDS)],
    NewRuns | None: [],
    list[dict[str, Any]]: [[], [{}], [{"run_id": "a"}, {"run_id": "a"}], [{"run_id": 1, "state": []}], [{}] * 100],
}
NESTED: tuple[type[msgspec.Struct], ...] = (MessageDescriptor, Sieve, Caps)


TOGETHER: dict[Any, list[int]] = {
    # Syncpoint, a mark, syncpoint if persistent, browses that lock, unlock; and what does not go together.
    Get: [0x2, 0x82, 0x1000, 0x220, 0x400, 0x1082],
    GetMany: [0x2, 0x1000, 0x82],
}
"""Options that a call says together with each odd field, besides saying none."""


def base(kind: type[Call]) -> dict[str, Any]:
    """Fields with which this call is right."""
    right: dict[str, Any] = {
        "handle": MINE,
        "object_name": Q,
        "object_type": "QLOCAL",
        "name": "NEW.Q" if kind.__name__ == "Define" else Q,
        "q_name": Q,
        "to_q_name": "OTHER.Q",
        "options": WIDE if kind is Open else 0,
        "attributes": {},
        "bodies": [b"x"],
        "client_id": "client-app",
        "count": 1,
        "unit": 1,
        "run_id": "run-1",
        "what": "everything",
        "monitor": "m:1",
        "record": {"state": "due"},
        "records": [{"run_id": "run-2", "state": "due"}],
        "initiation_q": Q,
        "fields": {"state": "ended"},
        "consumer": "JOB",
        "reservation": MINE,
        "ordinal": 0,
        "offset": 0,
        "connection": 999_999,
        "watches": [],
        "state": CopyState(name="Q@QM9", q_name=Q),
    }
    needed = [field.name for field in msgspec.structs.fields(kind) if field.required or field.name == "handle"]
    if "after" in kind.__struct_fields__ and "q_name" in kind.__struct_fields__:
        needed.append("q_name")  # blank means DEADQ, which is blank too
    return {name: right[name] for name in needed}


def odd_calls(kind: type[Call]) -> Iterator[Call]:
    """The right call, and one for each value of each of its fields, in and out of a unit of work."""
    right = base(kind)
    hints = get_type_hints(kind)
    yield kind(**right)
    for name in kind.__struct_fields__:
        for value in EDGES[hints[name]]:
            yield kind(**{**right, name: value})
            if {"options", "unit"} <= set(kind.__struct_fields__):
                for options in TOGETHER.get(kind, [0x2]):
                    yield kind(**{**right, "options": options, "unit": 1, name: value})
    for outer, inner in hints.items():
        if inner in NESTED:
            fields = get_type_hints(inner)
            for name in inner.__struct_fields__:
                for value in EDGES[fields[name]]:
                    yield kind(**{**right, outer: inner(**{name: value})})
                    if inner is MessageDescriptor:
                        # Fields of groups mean something beside these flags only: a segment in a group.
                        grouped = {"msg_flags": 0xA, "group_id": b"G" * 24, name: value}
                        yield kind(**{**right, outer: inner(**grouped)})
    if "descriptor" in hints:
        yield kind(**{**right, "options": 0x8000, "descriptor": MessageDescriptor(msg_flags=8)})


class Client:
    """One application on one store, which connects and opens the queue again whenever it has to."""

    def __init__(self, store: str, directory: Path) -> None:
        directory.mkdir()
        self.world = World(store, directory)
        self.world.define(Q, trigger_control="on", initiation_q_name="SYSTEM.DEFAULT.INITIATION.QUEUE")
        self.world.define("OTHER.Q")
        self.world.define("ALIAS.Q", "QALIAS", base_q_name=Q)
        self.world.define("XMIT.Q", usage="transmission")
        self.world.define("REMOTE.Q", "QREMOTE", remote_q_name="X", remote_q_mgr_name="QM9", xmit_q_name="XMIT.Q")
        self.world.define("MODEL.Q", "QMODEL")
        self._handle = 0

    def send(self, call: Call) -> Reply | None:
        session = self.world.session("app")
        if session.parked is not None:
            self.world.qm.lost([session])
            session = self.world.session("app")
        facts = self.world.store.standing.connections[session.connection]
        if self._handle not in facts.handles:
            self._handle = self.world.did(Open(object_name=Q, options=WIDE)).handle
        self.world.did(Put(q_name=Q, data=b"one"), "other")
        if getattr(call, "handle", None) == MINE:
            call = msgspec.structs.replace(call, handle=self._handle)
        if getattr(call, "reservation", None) == MINE:
            made = self.world.did(Reserve(handle=self._handle, consumer="JOB"))
            call = msgspec.structs.replace(call, reservation=made.reservation)
        reply = self.world.do(call)
        for again in (Alter(object_type="QLOCAL", name=Q, attributes=AS_IT_WAS), Clear(q_name="OTHER.Q")):
            self.world.do(again, "operator")
        return reply


@pytest.mark.parametrize("kind", CALLS)
def test_every_field_at_every_edge_is_answered_alike_by_all_stores(kind: type[Call], tmp_path: Path) -> None:
    # A backup begins only of a store that is a file.
    clients = [Client(store, tmp_path / store) for store in STORES if kind is not BeginBackup or store != "sqlite"]
    try:
        for call in odd_calls(kind):
            one, *others = [client.send(call) for client in clients]
            assert others == [one] * len(others), call
    finally:
        for client in clients:
            client.world.end()


@pytest.mark.parametrize("q_name", ["REMOTE.Q", "XMIT.Q"])
def test_every_descriptor_at_every_edge_is_transmitted_alike_by_all_stores(q_name: str, tmp_path: Path) -> None:
    clients = [Client(store, tmp_path / store) for store in STORES]
    try:
        for call in odd_calls(Put):
            one, *others = [client.send(msgspec.structs.replace(call, q_name=q_name, handle=0)) for client in clients]
            assert others == [one] * len(others), call
        handles = [client.world.open("XMIT.Q", OpenOption.INPUT_SHARED) for client in clients]
        while True:
            one, *others = [c.send(Get(handle=handle)) for c, handle in zip(clients, handles, strict=True)]
            assert others == [one] * len(others)
            if isinstance(one, Refused):
                break
    finally:
        for client in clients:
            client.world.end()


def test_every_name_at_every_edge_is_alike_for_a_queue_made_from_a_model(tmp_path: Path) -> None:
    clients = [Client(store, tmp_path / store) for store in STORES]
    try:
        for name in [*TEXTS, "A" * 32 + "*", "A" * 33 + "*", "A" * 48, "A" * 49, "* ", "A*", "AMQ.*"]:
            call = Open(object_name="MODEL.Q", options=WIDE, dynamic_q_name=name)
            one, *others = [client.send(call) for client in clients]
            assert others == [one] * len(others), call
    finally:
        for client in clients:
            client.world.end()

"""Getting from the head of a queue of any length: plain, by correlation id, in logical order, and whole groups only.

Each length has its queues in one store: plain messages, and groups of ten that arrived mixed with one another. In front
lies what is not to be walked over: groups whose first message is missing and, where whole groups are looked for, groups
that lack their last. What is got is backed out afterwards, outside the measurement.
"""

from __future__ import annotations

import time
from pathlib import Path

from msgspec.structs import replace

from tests.worlds import World
from trigmon.mq.calls import Get
from trigmon.mq.descriptors import MessageDescriptor, padded_id
from trigmon.mq.enums import GetOption, MatchOption, MsgFlag, OpenOption
from trigmon.mq.replies import WasGot
from trigmon.rules.model.changes import AddMessage

BATCH, GROUP, MIXED, CORREL_IDS = 10_000, 10, 10, 2
IN_GROUP, LAST = MsgFlag.MSG_IN_GROUP.value, (MsgFlag.MSG_IN_GROUP | MsgFlag.LAST_MSG_IN_GROUP).value
WAYS = {
    "plain": Get(handle=0),
    "by correlation id": Get(handle=0, match=MatchOption.CORREL_ID.value, correl_id=padded_id("C1")),
    "in logical order": Get(handle=0, options=GetOption.LOGICAL_ORDER.value),
    "whole groups only": Get(handle=0, options=int(GetOption.LOGICAL_ORDER | GetOption.ALL_MSGS_AVAILABLE)),
}


def _queue(length: int, way: str) -> str:
    return f"{'WHOLE' if way.startswith('whole') else 'ANY'}.{length}"


class Heads:
    """A queue manager on SQLite with a queue of each length, ``Q1000`` and so on."""

    def __init__(self, home: Path, lengths: tuple[int, ...]) -> None:
        home.mkdir()
        self.world = World("sqlite", home)
        self._groups = 0
        for q_name, length in ((_queue(length, way), length) for length in lengths for way in list(WAYS)[-2:]):
            self.world.define(q_name, max_q_depth=999_999_999)
            self._fill(q_name, length)

    def end(self) -> None:
        self.world.qm.stop()

    def get(self, length: int, way: str, count: int) -> tuple[float, float]:
        """Microseconds for one get of that way, a turn each; the queue is afterwards as it was before."""
        q_name = _queue(length, way)
        handle = self.world.open(q_name, OpenOption.INPUT_SHARED)
        session = self.world.session("app")
        way_of = WAYS[way]
        call = replace(way_of, handle=handle, options=way_of.options | GetOption.SYNCPOINT.value, unit=1)
        began = time.perf_counter()
        answers = [self.world.qm.turn([(session, number, call)])[0].reply for number in range(1, count + 1)]
        took = time.perf_counter() - began
        assert all(isinstance(reply, WasGot) for reply in answers), answers[-1]
        self.world.qm.lost([session])
        return took / count * 1e6, 0.0

    def _fill(self, q_name: str, length: int) -> None:
        """A fifth of it broken groups, then plain messages and whole groups in turn."""
        for _ in range(length // 5 // (GROUP - 1)):
            self._groups += 1
            lacks_last = q_name.startswith("WHOLE") and self._groups % 2
            seqs = range(1, GROUP) if lacks_last else range(2, GROUP + 1)
            self._add(q_name, [self._member(self._groups, seq) for seq in seqs])
        whole = self._messages(length - length // 5)
        for start in range(0, len(whole), BATCH):
            self._add(q_name, whole[start : start + BATCH])

    def _messages(self, count: int) -> list[MessageDescriptor]:
        made: list[MessageDescriptor] = []
        while len(made) < count:
            for number in range(GROUP * MIXED):
                correl_id = padded_id(f"C{number % CORREL_IDS}")
                made.append(MessageDescriptor(correl_id=correl_id))
            groups = range(self._groups + 1, self._groups + MIXED + 1)
            made += [self._member(group, seq) for seq in range(1, GROUP + 1) for group in groups]
            self._groups += MIXED
        return made[:count]

    def _member(self, group: int, seq: int) -> MessageDescriptor:
        flags = LAST if seq == GROUP else IN_GROUP
        return MessageDescriptor(group_id=padded_id(f"G{group}"), msg_seq_number=seq, msg_flags=flags)

    def _add(self, q_name: str, descriptors: list[MessageDescriptor]) -> None:
        store, ids = self.world.store, self.world.qm._ids
        for start in range(0, len(descriptors), BATCH):
            store.begin()
            store.mark()
            changes = []
            for descriptor in descriptors[start : start + BATCH]:
                number = ids.message()
                with_id = MessageDescriptor(
                    msg_id=ids.msg_id(number),
                    correl_id=descriptor.correl_id,
                    group_id=descriptor.group_id,
                    msg_seq_number=descriptor.msg_seq_number,
                    msg_flags=descriptor.msg_flags,
                )
                changes.append(AddMessage(q_name, number, 0, False, with_id, b"small"))
            store.apply(changes, False)
            store.end()

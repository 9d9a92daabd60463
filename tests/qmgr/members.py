"""A member of a group with one connection, for tests that cut it off where it stands."""

from __future__ import annotations

from tests.postgres import place
from trigmon.mq.calls import Get, Open, Put
from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.enums import OpenOption
from trigmon.mq.replies import Opened, Refused, WasGot
from trigmon.qmgr.clock import VirtualClock
from trigmon.qmgr.manager import QueueManager
from trigmon.qmgr.sessions import Identity
from trigmon.qmgr.two_stores import TwoStores
from trigmon.store.memory.store import MemoryStore
from trigmon.store.postgres.store import PostgresStore
from trigmon.store.sqlite.store import SqliteStore

IN = OpenOption.INPUT_SHARED.value


class Member:
    """A queue manager with one connection; ``die`` cuts it off where it stands, and ``start`` starts it again."""

    def __init__(self, kind, directory, group, name="QM1"):
        self.kind, self.directory, self.name = kind, directory, name
        self.group = group
        self.memory = MemoryStore()
        self.lives = 0
        self.start()

    def start(self):
        self.own = {
            "memory": lambda: self.memory,
            "sqlite": lambda: SqliteStore(self.directory),
            "postgres": lambda: PostgresStore(place(self.directory)),
        }[self.kind]()
        self.shared = self.group.join(self.name)
        self.store = TwoStores(self.own, self.shared)
        self.qm = QueueManager(self.name, self.store, VirtualClock())
        self.lives += 1
        self.session = self.qm.connect(Identity(client_id=f"client-{self.lives}", administrator=True))

    def die(self):
        self.store.abandon()

    def do(self, call):
        (answer,) = [a for a in self.qm.turn([(self.session, 1, call)]) if a.session is self.session]
        return answer.reply

    def did(self, call):
        reply = self.do(call)
        assert not isinstance(reply, Refused), reply
        return reply

    def put(self, q_name, data, unit=1):
        descriptor = MessageDescriptor(persistence=1)
        return self.did(Put(q_name=q_name, data=data, descriptor=descriptor, options=2 * bool(unit), unit=unit))

    def left(self, q_name):
        """What can be got of a queue, with each message's backout count."""
        opened = self.did(Open(object_name=q_name, options=IN))
        assert isinstance(opened, Opened)
        found = []
        while isinstance(got := self.do(Get(handle=opened.handle)), WasGot):
            found.append((got.data, got.descriptor.backout_count))
        return found


def works_on_both(member):
    """Unit 1 puts on both and gets what lay on both."""
    for q_name in ("OWN", "SHARED"):
        member.put(q_name, b"old", unit=0)
    for q_name in ("OWN", "SHARED"):
        opened = member.did(Open(object_name=q_name, options=IN))
        member.did(Get(handle=opened.handle, options=2, unit=1))
        member.put(q_name, b"new")

"""A queue manager in this process, asked call by call as a connection would: for what needs rules but no socket."""

from __future__ import annotations

from itertools import count
from typing import Any

from trigmon.mq.attributes import EVERY_TYPE
from trigmon.mq.calls import Call, Display
from trigmon.mq.errors import MQError
from trigmon.mq.replies import Listing, Refused, Reply
from trigmon.qmgr.clock import VirtualClock
from trigmon.qmgr.manager import QueueManager
from trigmon.qmgr.sessions import Identity
from trigmon.qmgr.two_stores import TwoStores
from trigmon.store.memory.group import MemoryGroup
from trigmon.store.memory.store import MemoryStore


class InProcess:
    """``qm(call)`` is the reply; a refusal is raised, as the client raises it."""

    def __init__(self, name: str = "QM1", *, in_group: bool = False) -> None:
        store = TwoStores(MemoryStore(), MemoryGroup().join(name)) if in_group else MemoryStore()
        self._manager = QueueManager(name, store, VirtualClock())
        identity = Identity(client_id="a1", application="test", pid=1, uid=0, user="root", administrator=True)
        self._session = self._manager.connect(identity)
        self._numbers = count(1)

    def __call__(self, call: Call) -> Reply:
        (answer,) = self._manager.turn([(self._session, next(self._numbers), call)])
        if isinstance(answer.reply, Refused):
            raise MQError.of(answer.reply.reason, answer.reply.about)
        return answer.reply

    def rows(self, *object_types: str) -> list[dict[str, Any]]:
        """Returns every object, or those of these types, as DISPLAY shows them, without the times."""
        found = []
        for object_type in object_types or EVERY_TYPE:
            listing = self(Display(object_type=object_type))
            assert isinstance(listing, Listing)
            assert not listing.more
            found += [{k: v for k, v in row.items() if not k.endswith("_ms")} for row in listing.rows]
        return found

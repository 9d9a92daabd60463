"""When the oldest message of each queue was put: looked for in the store, and kept while the queue stays as it is.

A look-up costs 20 microseconds, and metrics ask for all queues every few seconds: most have not changed.
"""

from __future__ import annotations

from trigmon.qmgr.queue_history import Activity
from trigmon.rules.model.facts import Wants
from trigmon.rules.queue_status import oldest_of
from trigmon.store.port import Store


class OldestMessages:
    """The moments of one queue manager's queues; ``store`` and ``activity`` are the manager's own."""

    def __init__(self, store: Store, activity: Activity) -> None:
        self._store = store
        self._activity = activity

    def put_ms(self, connection: int, now: int, q_name: str) -> int:
        """Returns when the oldest message that a get could have was put; 0 where there is none."""
        queue = self._store.facts(Wants(connection, q_name), False).queue
        if queue is None or not queue.depth:
            return 0
        known = self._activity.known_oldest(queue)
        if known is not None:
            return known
        found = self._store.find(oldest_of(queue, now))
        message = found.messages[0] if found.messages else None
        put_ms = message.descriptor.put_ms if message is not None else 0
        # One that expires stays where it is, and is no longer the oldest: no change tells that.
        if message is not None and not message.expires_ms:
            self._activity.keep_oldest(queue, put_ms)
        return put_ms

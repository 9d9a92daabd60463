"""Reads events in a unit of work, sends one notification, and commits: what was not sent is on the queue again."""

from __future__ import annotations

import time
from collections.abc import Callable

from trigmon.client.connection import Connection
from trigmon.client.message import Message
from trigmon.client.queue import Queue
from trigmon.mq.errors import NoMsgAvailable
from trigmon.notifier.channels import Channel, PartlySentError
from trigmon.notifier.notification import Notification, grouped, read_event

MOST_EVENTS = 1000
"""Events of one notification: far below MAXUMSGS, and a page that nobody reads to its end."""
FRAME = 100
LONGEST_S = 120.0
"""No notification is begun later: in a stream of events a run ends before its TIMELIMIT. The queue starts the next."""


def notify(
    qm: Connection,
    q_name: str,
    channel: Channel,
    *,
    collect_s: float,
    process_name: str = "",
    timer: Callable[[], float] = time.monotonic,
) -> int:
    """Sends what is on the queue, and ends when it is empty or LONGEST_S are over; returns how many were sent.

    Events are collected for ``collect_s`` seconds behind the first. Raises SendError, and the events are on the queue
    again: a kill between the sending and the commit sends them twice, with the same key. Behind PartlySentError they
    are not.
    """
    sent, until_s = 0, timer() + LONGEST_S
    with qm.open(q_name, "input_shared") as queue:
        while timer() < until_s and (messages := _collected(queue, collect_s, timer)):
            events = [read_event(message.data, message.descriptor.put_ms) for message in messages]
            groups = grouped(events, q_name, process_name)
            if groups:
                try:
                    channel.send(Notification(qm.q_mgr_name, messages[0].msg_id.hex(), groups))
                except PartlySentError:
                    qm.commit()
                    raise
                sent += 1
            qm.commit()
    return sent


def _collected(queue: Queue, collect_s: float, timer: Callable[[], float]) -> list[Message]:
    """Returns the messages that come until the time is over, or MOST_EVENTS; none where none is there at first."""
    found: list[Message] = []
    until_s = timer() + collect_s
    while len(found) < MOST_EVENTS:
        wait_ms = max(0, round(1000 * (until_s - timer()))) if found else 0
        try:
            found += queue.get_many(
                min(FRAME, MOST_EVENTS - len(found)), wait_interval_ms=wait_ms or None, syncpoint=True
            )
        except NoMsgAvailable:
            break
    return found

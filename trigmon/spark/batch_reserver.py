"""Reserves the batches of a drain, the next one while the present one is written.

A consumer has one reservation of a queue at most, so a drain reserves by two names in turn. Of two open reservations
the one with the lower number is at work or was when its job died. The other one was never begun: it may go back.

The queue manager reserves in slices, a call each. The calls for the next batch are sent without waiting; their replies
are read when the present batch has been written.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from trigmon.client.connection import Connection
from trigmon.client.queue import Queue
from trigmon.client.reservation import Reservation, reserve
from trigmon.mq.calls import Reserve
from trigmon.mq.errors import MQError, ObjectInUse
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Refused, Reply, Reserved
from trigmon.rules.model.stored_messages import SLICE
from trigmon.spark.retry import IN_USE_S, when_free

NEXT = " (next)"
"""Ends the other name of a consumer."""
LONGEST_NAME = 256
"""Characters of a consumer's name at most."""
_MOST_CALLS = 512
"""A queue manager reads 1024 calls ahead; what these do not reserve is reserved when the batch is wanted."""


class _Sent(NamedTuple):
    """The call that was sent ahead, a few times, by which link, and its replies as far as they have come."""

    call: Reserve
    client_id: str
    replies: list[Reply]


class BatchReserver:
    """The reservations of one drain. ``consumers`` are its two names, or one where the other would be too long."""

    def __init__(self, connection: Connection, queue: Queue, consumer: str, max_bytes: int, groups: bool) -> None:
        other = f"{consumer}{NEXT}"
        self.consumers = (consumer, other) if len(other) <= LONGEST_NAME else (consumer,)
        self._connection = connection
        self._queue = queue
        self._max_bytes = max_bytes
        self._groups = groups
        self._at_work = ""
        self._is_refused = False
        self._sent: _Sent | None = None

    def rows(self) -> list[dict[str, Any]]:
        """Returns the reservations of this consumer of which anything is left, the oldest first."""
        found = self._connection.reservations(self._queue.q_name)
        own = (row for row in found if row["consumer"] in self.consumers and row["own"])
        return sorted(own, key=lambda row: int(row["reservation"]))

    def next(self, limit: int) -> Reservation:
        """Returns the batch that was reserved ahead, the one that a job before has left, or a new one.

        Raises NoMsgAvailable, and ObjectInUse where another job has a reservation of this consumer.
        """
        return self._sent_ahead() or when_free(lambda: self._first(limit), IN_USE_S)

    def reserve_ahead(self, made: Reservation, limit: int) -> None:
        """Sends the calls that reserve the batch behind ``made``, unless that one took all there was."""
        is_full = made.count >= limit or made.size * 2 >= self._max_bytes
        if self._sent is not None or len(self.consumers) == 1 or self._is_refused or not is_full:
            return
        name = next(each for each in self.consumers if each != self._at_work)
        slices = -(-limit // (SLICE // 4 if self._groups else SLICE)) + 1
        call = self._call(name, limit)
        with suppress(MQError):  # the next call tells what is wrong with the link
            replies = self._connection.send_ahead([call] * min(slices, _MOST_CALLS))
            self._sent = _Sent(call, self._connection.client_id, replies)

    def hear(self) -> None:
        """Reads the replies to what was sent ahead: a call behind them would fail with the link that they came by."""
        if self._sent is not None:
            with suppress(MQError):  # whatever is wrong with the link, the next call says
                self._connection.hear_ahead()

    def ahead(self) -> int:
        """Returns how many messages are reserved ahead, where all of it is there."""
        self.hear()
        whole = None if self._sent is None else _whole(self._sent.replies)
        return 0 if whole is None else whole.count

    def give_back(self) -> None:
        """Gives back what was reserved ahead: nobody has worked on it, and no backout count rises."""
        if self._sent is None:
            return
        self.hear()
        sent, self._sent = self._sent, None
        with suppress(MQError):  # without a link it stays, as behind a job that died
            when_free(lambda: self._give_back_unbegun(sent), IN_USE_S)

    def _sent_ahead(self) -> Reservation | None:
        """Returns the batch that was reserved ahead; None where there is none, or not all of it.

        One whose link was lost goes back first: offered again, its backout counts would rise, and it was never begun.
        """
        if self._sent is None:
            return None
        self.hear()
        sent, self._sent = self._sent, None
        self._is_refused = any(isinstance(r, Refused) and r.reason == Reason.RESOURCE_PROBLEM for r in sent.replies)
        whole = _whole(sent.replies)
        if whole is None or sent.client_id != self._connection.client_id:
            when_free(lambda: self._give_back_unbegun(sent, only_if_lost=True), IN_USE_S)
            return None
        self._at_work = sent.call.consumer
        return Reservation(self._connection, whole)

    def _give_back_unbegun(self, sent: _Sent, *, only_if_lost: bool = False) -> None:
        """Gives back what was reserved ahead, unless another job was offered it meanwhile. Raises ObjectInUse.

        Until the queue manager notices that the link is lost, the lost one holds it.
        """
        rows = [row for row in self.rows() if row["token"] == sent.call.token and not row["offers"]]
        is_lost = sent.client_id != self._connection.client_id
        for row in rows:
            if is_lost and row["held"]:
                raise ObjectInUse(f"{self._queue.q_name}: the lost link still holds RESERVATION({row['reservation']})")
            if is_lost or not only_if_lost:
                _release(self._connection, row["reservation"])

    def _first(self, limit: int) -> Reservation:
        """Returns the open reservation with the lowest number, or a new one. What lies behind it goes back."""
        left = self.rows()
        self._at_work = left[0]["consumer"] if left else self.consumers[0]
        made = reserve(self._connection, self._call(self._at_work, limit))
        for row in self.rows():
            if row["reservation"] < made.number:
                # Another job of this consumer has just begun it.
                _release(self._connection, made.number)
                raise ObjectInUse(f"{self._queue.q_name}: another job has a reservation of {row['consumer']}")
            if row["reservation"] > made.number:
                _release(self._connection, row["reservation"])
        return made

    def _call(self, consumer: str, limit: int) -> Reserve:
        return Reserve(
            handle=self._queue.handle,
            consumer=consumer,
            max_messages=limit,
            max_bytes=self._max_bytes,
            whole_groups=self._groups,
            token=new_id(),
        )


def give_back_second(connection: Connection, q_name: str, consumer: str) -> None:
    """Gives back what a drain that was killed left under the second name of a stream's consumer.

    A stream asks for its own name alone: nobody would offer it again. No backout count rises. Raises ObjectInUse where
    another job holds it.
    """
    when_free(lambda: _give_back(connection, q_name, f"{consumer}{NEXT}"), IN_USE_S)


def _give_back(connection: Connection, q_name: str, name: str) -> None:
    for row in connection.reservations(q_name):
        if row["consumer"] != name or not row["own"]:
            continue
        if row["held"]:
            raise ObjectInUse(f"{q_name}: another job has RESERVATION({row['reservation']}) of {name}")
        _release(connection, row["reservation"])


def _whole(replies: Sequence[Reply]) -> Reserved | None:
    """Returns the reply by which a reservation is complete."""
    return next((reply for reply in replies if isinstance(reply, Reserved) and not reply.more), None)


def _release(connection: Connection, number: int) -> None:
    with suppress(MQError):  # another job holds it, or it has ended
        connection.release(number, counts=False)


def new_id() -> str:
    """Returns a unique name; names sort by time."""
    return f"b{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{os.urandom(6).hex()}"

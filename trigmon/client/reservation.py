"""A reservation in an application's hands: a fixed batch to read as often as need be, and to settle when it is done.

One connection reserves; any others, of any process, read by the reservation's number alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from trigmon.client.message import Message
from trigmon.mq.calls import Attempt, ReadReserved, Reject, Release, Reserve, Settle
from trigmon.mq.packed_messages import encoded, pack
from trigmon.mq.replies import Done, Reserved, ReservedRows, Settled, WereReserved

if TYPE_CHECKING:
    from trigmon.client.connection import Connection

ALL = 2**31 - 1
_AHEAD = 8


class Reservation:
    """What :meth:`trigmon.client.queue.Queue.reserve` returns. The ordinals are 0 to ``count`` - 1, in get order.

    ``left_ordinals`` are the stretches that were left when it was reserved, each the first and the one behind the last.
    ``again``: it was there already, with the ``token`` it was made with; ``offers`` is how often it was offered anew.
    ``deaths`` are stretches that earlier holders worked on alone when they were gone (:meth:`attempt`), each the first,
    the one behind the last, and how often; ``settled`` is how many messages were settled by then.
    """

    def __init__(self, connection: Connection, reply: Reserved) -> None:
        self.connection = connection
        self.number = reply.reservation
        self.count = reply.count
        self.size = reply.size
        self.left = reply.left
        self.left_ordinals = [(first, end) for first, end in reply.left_ordinals]
        self.token = reply.token
        self.again = reply.again
        self.offers = reply.offers
        self.deaths = [(first, end, times) for first, end, times in reply.deaths]
        self.settled = reply.settled

    def __repr__(self) -> str:
        return f"<Reservation {self.number} of {self.count} messages, {self.left} left>"

    def read(self, first: int = 0, count: int | None = None) -> Iterator[tuple[int, Message]]:
        """Reads as :meth:`Connection.read_reserved`."""
        return read(self.connection, self.number, first, count)

    def settle(self, first: int = 0, count: int | None = None) -> bool:
        """Settles as :meth:`Connection.settle`."""
        return self._left(Settle(reservation=self.number, ordinal=first, count=-1 if count is None else count))

    def release(self, first: int = 0, count: int | None = None, *, counts: bool = True) -> bool:
        """Releases as :meth:`Connection.release`."""
        number = -1 if count is None else count
        return self._left(Release(reservation=self.number, ordinal=first, count=number, counts=counts))

    def attempt(self, first: int = 0, count: int = 0) -> None:
        """Says that from now on these messages alone are worked on; none with 0.

        Who is offered the reservation behind this one's death finds them in ``deaths``.
        """
        self.connection.ask(Attempt(reservation=self.number, ordinal=first, count=count), Done)

    def reject(self, ordinal: int, why: str = "") -> None:
        """Puts one message onto the backout queue or, that failing, the dead-letter queue.

        ``why`` is what :attr:`Message.rejection` says there, and the queue manager's log.

        Raises CommandFailed where no queue takes it: then it stays.
        """
        self._left(Reject(reservation=self.number, ordinal=ordinal, why=why))

    def _left(self, call: Settle | Release | Reject) -> bool:
        reply = self.connection.ask(call, Settled)
        self.left = reply.left
        return not reply.already


def reserve(connection: Connection, call: Reserve) -> Reservation:
    """Returns the reservation, complete. Raises NoMsgAvailable when there is nothing to reserve.

    A large one is made in slices, a call each. A few are sent ahead, so that nobody waits between them; what comes
    behind the last slice is answered with the same reservation.
    """
    reply = connection.ask(call, Reserved)
    while reply.more:
        answers = connection.pipeline([call] * _AHEAD)
        reply = next((a for a in answers if isinstance(a, Reserved) and not a.more), reply)
    return Reservation(connection, reply)


def read_rows(connection: Connection, call: ReadReserved) -> ReservedRows:
    """Returns what a call for packed messages is answered with; an older queue manager answers with others."""
    reply = connection.call(call)
    if isinstance(reply, WereReserved):
        descriptors = [message.descriptor for message in reply.messages]
        bodies = [message.data for message in reply.messages]
        return pack(encoded(descriptors), bodies, reply.ordinals, reply.ordinal, more=reply.more)
    assert isinstance(reply, ReservedRows), reply
    return reply


def read(connection: Connection, number: int, first: int, count: int | None) -> Iterator[tuple[int, Message]]:
    """Yields what is left of these ordinals, a frame after the other."""
    left = ALL if count is None else count
    while left > 0:
        reply = connection.ask(ReadReserved(reservation=number, ordinal=first, count=left), WereReserved)
        yield from zip(reply.ordinals, map(Message, reply.messages), strict=True)
        if not reply.more:
            return
        left, first = left - (reply.ordinal - first), reply.ordinal

"""Access checks that no right replaces: another user's reservation or dynamic queue, limits per user.

The rights that a call needs stand in :mod:`trigmon.rules.call_rights`.
"""

from __future__ import annotations

from trigmon.mq.attributes import LocalQueue
from trigmon.mq.errors import HandleNotAvailable, NotAuthorized, ResourceProblem
from trigmon.rules.model.facts import WideFacts
from trigmon.rules.model.handles import ConnectionFacts
from trigmon.rules.model.reservation import Reservation

_OURS = "SYSTEM.TRIGMON."


def check_may_use(q_name: str, connection: ConnectionFacts) -> None:
    """Checks the use of a queue for messages. Raises NotAuthorized (2035).

    What lies on a queue of trigmon's own says which files the queue manager's user moves and reads.
    """
    if q_name.startswith(_OURS) and not connection.is_administrator:
        raise NotAuthorized(f"{q_name}: messages of trigmon's own queues are for administrators")


def check_may_end(reservation: Reservation, named: str, connection: ConnectionFacts) -> None:
    """Raises NotAuthorized where another than the holder, its user or an administrator takes of a reservation.

    Over TCP no client proves its user: there all are one user, without a name.
    """
    if not is_of(reservation, connection):
        raise NotAuthorized(
            f"{named} is of {reservation.user or 'a user that is not known'}: its holder, that user and an "
            "administrator may take it again, settle it and reject messages of it; an administrator gives it back by "
            "trigmon spark reservations release"
        )


def is_of(reservation: Reservation, connection: ConnectionFacts) -> bool:
    """Returns whether the connection is the holder, of the same user, or an administrator's."""
    if connection.is_administrator or reservation.holder == connection.connection:
        return True
    return reservation.user in (None, connection.user)


def check_may_delete(definition: LocalQueue, connection: ConnectionFacts) -> None:
    """Raises NotAuthorized (2035) where a handle that did not make a dynamic queue is another user's.

    A queue made over TCP, or before its user was recorded, may be deleted by every user.
    """
    if definition.made_by not in ("", connection.user) and not connection.is_administrator:
        raise NotAuthorized(
            f"{definition.name} was made by {definition.made_by}: that user or an administrator deletes it"
        )


def check_handles(facts: WideFacts) -> None:
    """Raises HandleNotAvailable (2017) at the limit of handles: of the connection, or of its user over all of them."""
    connection = facts.connection
    if len(connection.handles) >= facts.q_mgr.max_handles:
        raise HandleNotAvailable(f"MAXHANDS({facts.q_mgr.max_handles})")
    if 0 < connection.max_handles <= facts.handles_of_user:
        raise HandleNotAvailable(
            f"{_user(connection)} has {facts.handles_of_user} objects open: close some, or raise "
            "server.max_handles_per_user"
        )


def check_dynamic_queues(facts: WideFacts) -> None:
    """Raises ResourceProblem (2102) at the limit of dynamic queues of a user."""
    connection = facts.connection
    if 0 < connection.max_dynamic_queues <= facts.dynamic_of_user:
        raise ResourceProblem(
            f"{_user(connection)} has {facts.dynamic_of_user} dynamic queues: delete some, or raise "
            "server.max_dynamic_queues_per_user"
        )


def check_reservations(facts: WideFacts) -> None:
    """Raises ResourceProblem (2102) at the limit of reservations of a user."""
    connection = facts.connection
    if 0 < connection.max_reservations <= facts.reservations_of_user:
        raise ResourceProblem(
            f"{_user(connection)} has {facts.reservations_of_user} reservations: settle or release some, or raise "
            "server.max_reservations_per_user"
        )


def _user(connection: ConnectionFacts) -> str:
    return connection.user or "all who come over TCP together"

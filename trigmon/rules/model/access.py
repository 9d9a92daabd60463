"""Who may do what to whose: MQSET, another's reservation or dynamic queue, a user's share.

What a verb asks of everybody stands in the table of verbs; here is what depends on the object.
"""

from __future__ import annotations

from trigmon.mq.attributes import LocalQueue
from trigmon.mq.errors import HandleNotAvailable, NotAuthorized, ResourceProblem
from trigmon.rules.model.facts import Facts
from trigmon.rules.model.handles import ConnectionFacts
from trigmon.rules.model.reservation import Reservation

_SYSTEM = "SYSTEM."


def check_may_set(name: str, connection: ConnectionFacts) -> None:
    """MQ's authority to set: asked for at MQOPEN, and of what is set. Raises NotAuthorized (2035)."""
    if connection.is_administrator:
        return
    if name.startswith(_SYSTEM):
        raise NotAuthorized(f"{name}: setting attributes of a SYSTEM object needs an administrator (ALTER, MQSET)")
    if not connection.is_setter:
        raise NotAuthorized(
            f"{name}: MQSET needs the right to set: server.setters names its users, and an administrator has it; "
            "over TCP nobody has"
        )


def check_may_end(reservation: Reservation, named: str, connection: ConnectionFacts) -> None:
    """What takes a reservation, or messages out of it: its holder, its user, an administrator. Raises NotAuthorized.

    Over TCP nobody proves which user he is: there all are one, without a name.
    """
    if not is_of(reservation, connection):
        raise NotAuthorized(
            f"{named} is of {reservation.user or 'a user that is not known'}: its holder, that user and an "
            "administrator may take it again, settle it and reject messages of it; an administrator gives it back by "
            "trigmon spark reservations release"
        )


def is_of(reservation: Reservation, connection: ConnectionFacts) -> bool:
    """Whether the connection is the holder, of the same user, or an administrator's."""
    if connection.is_administrator or reservation.holder == connection.connection:
        return True
    return reservation.user in (None, connection.user)


def check_may_delete(definition: LocalQueue, connection: ConnectionFacts) -> None:
    """A dynamic queue, by a handle that did not make it: its user and administrators. Raises NotAuthorized (2035).

    One that was made over TCP, or before its user was recorded, may be deleted by anybody.
    """
    if definition.made_by not in ("", connection.user) and not connection.is_administrator:
        raise NotAuthorized(
            f"{definition.name} was made by {definition.made_by}: that user or an administrator deletes it"
        )


def check_handles(facts: Facts) -> None:
    """One object more, of the connection and of its user over all connections. Raises HandleNotAvailable (2017)."""
    connection = facts.connection
    if len(connection.handles) >= facts.q_mgr.max_handles:
        raise HandleNotAvailable(f"MAXHANDS({facts.q_mgr.max_handles})")
    if 0 < connection.max_handles <= facts.handles_of_user:
        raise HandleNotAvailable(
            f"{_user(connection)} has {facts.handles_of_user} objects open: close some, or raise "
            "server.max_handles_per_user"
        )


def check_dynamic_queues(facts: Facts) -> None:
    """One dynamic queue more. Raises ResourceProblem (2102)."""
    connection = facts.connection
    if 0 < connection.max_dynamic_queues <= facts.dynamic_of_user:
        raise ResourceProblem(
            f"{_user(connection)} has {facts.dynamic_of_user} dynamic queues: delete some, or raise "
            "server.max_dynamic_queues_per_user"
        )


def check_reservations(facts: Facts) -> None:
    """One reservation more. Raises ResourceProblem (2102)."""
    connection = facts.connection
    if 0 < connection.max_reservations <= facts.reservations_of_user:
        raise ResourceProblem(
            f"{_user(connection)} has {facts.reservations_of_user} reservations: settle or release some, or raise "
            "server.max_reservations_per_user"
        )


def _user(connection: ConnectionFacts) -> str:
    return connection.user or "all who come over TCP together"

"""Who may do what to whose: MQSET, and what ends another's reservation.

What a verb asks of everybody stands in the table of verbs; here is what depends on the object.
"""

from __future__ import annotations

from trigmon.mq.errors import NotAuthorized
from trigmon.rules.facts import ConnectionFacts
from trigmon.rules.reserved import Reservation

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
    """What takes messages out of a reservation: its holder, its user, an administrator. Raises NotAuthorized (2035).

    Over TCP nobody proves which user he is: there all are one, without a name.
    """
    if connection.is_administrator or reservation.holder == connection.connection:
        return
    if reservation.user not in (None, connection.user):
        raise NotAuthorized(
            f"{named} is of {reservation.user or 'a user that is not known'}: its holder, that user and an "
            "administrator may settle it and reject messages of it"
        )

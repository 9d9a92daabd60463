"""What an attack is, and the one table of them.

Each module ``on_...`` adds its own entries by :func:`add`; :mod:`tests.attacks.everything` has all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

STRANGER, MEMBER, TCP, MONITOR = "stranger", "member", "tcp", "monitor"
ROLES = {
    STRANGER: "another user of the machine, with no right at all",
    MEMBER: "a member of the socket's group",
    TCP: "that other user, through the loopback port",
    MONITOR: "a process of the monitor's user, without the monitor's capabilities",
}


@dataclass(frozen=True)
class Attack:
    """One way to get what is another's.

    ``prepare(stage)`` runs as root, and its value is handed to ``attempt(place, given)``, which runs in a process of
    the attacker. ``succeeded(stage, said, given)`` runs as root behind it and looks at the effect. Those with ``late``
    are looked at when all that was put has been worked off, those with ``restarts`` behind a monitor that was killed.
    """

    id: str
    who: str
    tries: str
    success: str
    attempt: Callable[[Any, Any], Any]
    succeeded: Callable[[Any, Any, Any], Any]
    prepare: Callable[[Any], Any]
    late: bool
    restarts: bool


ATTACKS: list[Attack] = []


def add(
    id: str,
    who: str,
    tries: str,
    success: str,
    attempt: Callable[[Any, Any], Any],
    succeeded: Callable[[Any, Any, Any], Any] | None = None,
    *,
    prepare: Callable[[Any], Any] = lambda stage: None,
    late: bool = False,
    restarts: bool = False,
) -> None:
    """Adds an entry. Without ``succeeded`` it succeeded when ``attempt`` returned something true."""
    check = succeeded or (lambda stage, said, given: said)
    ATTACKS.append(Attack(f"{who}-{id}", who, tries, success, attempt, check, prepare, late or restarts, restarts))

"""Where a scenario is played: a real queue manager that applications call, and a clock that only the play moves.

:class:`Stage` is all that the player knows of it; :mod:`trigmon.simulate.in_process` is the one that ships.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from trigmon.mq.calls import Backout, Call, Commit, Get, Put
from trigmon.mq.descriptors import TriggerMessage
from trigmon.mq.enums import ApplType, GetOption, PutOption
from trigmon.mq.replies import Reply


@dataclass(frozen=True)
class Available:
    """A trigger message that became available on an initiation queue of the queue manager ``on``."""

    on: str
    initiation_q: str
    message: TriggerMessage

    def fields(self) -> dict[str, Any]:
        """Returns what an item of ``triggers`` may be compared with."""
        return {"on": self.on} | {name: getattr(self.message, name) for name in self.message.__struct_fields__}

    def plain(self) -> dict[str, Any]:
        """Returns the same for JSON: enumerations as words."""
        number = self.message.appl_type
        known = ApplType._value2member_map_.get(number)
        return self.fields() | {"appl_type": known.name.lower() if isinstance(known, ApplType) else number}

    def __str__(self) -> str:
        return self.message.q_name


class Stage(Protocol):
    """Running queue managers. Every call is over when it returns; a refusal is raised as MQError."""

    def perform(self, q_mgr: str, application: str, call: Call) -> Reply:
        """Performs an application's call. Its first call connects; one under syncpoint joins its unit of work."""

    def command(self, q_mgr: str, call: Call) -> Reply:
        """Performs a command or a question of an administrator who makes no connection of the scenario's."""

    def kill(self, q_mgr: str, application: str) -> None:
        """Cuts an application's connection to a queue manager."""

    def restart(self, q_mgr: str) -> None:
        """Ends the queue manager in order and starts it again; every connection to it is lost."""

    def crash(self, q_mgr: str) -> None:
        """Kills the queue manager and starts it again; every connection to it is lost."""

    def advance(self, milliseconds: int) -> None:
        """Lets time pass; what is due meanwhile happens at its own instant."""

    def became_available(self) -> list[Available]:
        """Returns the trigger messages that became available since the last question."""

    def close(self) -> None:
        """Ends everything and leaves nothing behind."""


def numbered(call: Call, unit: int) -> Call:
    """Returns the call with the number of its connection's unit of work, if it takes part in one."""
    takes_part = (
        isinstance(call, Commit | Backout)
        or (isinstance(call, Put) and call.options & PutOption.SYNCPOINT)
        or (isinstance(call, Get) and call.options & (GetOption.SYNCPOINT | GetOption.SYNCPOINT_IF_PERSISTENT))
    )
    return msgspec.structs.replace(call, unit=unit) if takes_part else call

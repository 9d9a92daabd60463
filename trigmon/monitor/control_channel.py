"""Controls of a monitor: which of its runs are to be cancelled, and whether held runs are to be looked at again."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from trigmon.mq.calls import BridgeState, Call, Controls, LostServer
from trigmon.mq.replies import Reply, Values

_LOOK_S: Final = 0.5


class ControlChannel:
    """Asks the queue manager for controls, twice a second and whenever a get ended without a message."""

    def __init__(
        self,
        call: Callable[[Call], Reply],
        monitor: str,
        lost: Callable[[], list[LostServer]],
        bridges: Callable[[], list[BridgeState]],
    ) -> None:
        self._call = call
        self._lost = lost
        self._bridges = bridges
        self._monitor = monitor
        self._number: int | None = None
        self._again_at = 0.0

    def ask_now(self) -> None:
        """Asks with the next poll: a waiting get ended without a message, so controls may have changed."""
        self._again_at = 0.0

    def poll(self) -> list[str] | None:
        """Returns the runs to end where there are any or anything has changed, else None.

        Raises what ``call`` raises.
        """
        if time.monotonic() < self._again_at:
            return None
        reply = self._call(Controls(monitor=self._monitor, lost_servers=self._lost(), bridges=self._bridges()))
        assert isinstance(reply, Values)
        self._again_at = time.monotonic() + _LOOK_S
        cancel: list[str] = reply.values["cancel"]
        if reply.values["number"] == self._number and not cancel:
            return None
        self._number = reply.values["number"]
        return cancel

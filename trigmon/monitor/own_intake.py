"""The intake of a monitor from its own queue manager: the other adapter of :class:`trigmon.bridge.intake.Intake`."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from trigmon.client.link import Link, LinkDown
from trigmon.monitor.trigger_plan import DeadLetter
from trigmon.monitor.undeliverable import put_dead_letter
from trigmon.mq.calls import Backout, Commit, GetMany, NewRuns, Open
from trigmon.mq.enums import Feedback, GetOption, OpenOption
from trigmon.mq.errors import MQError, NoMsgAvailable
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Opened, WasGot, WereGot

# How long one get waits. A message ends the wait at once; the interval only bounds how late a stop is noticed.
WAIT_MS: Final = 500
_AT_ONCE: Final = 32
_GET: Final = int(GetOption.WAIT | GetOption.SYNCPOINT | GetOption.FAIL_IF_QUIESCING)
_OPEN: Final = int(OpenOption.INPUT_SHARED | OpenOption.FAIL_IF_QUIESCING)


class OwnIntake:
    """Trigger messages of the queue manager behind a link. Its methods raise LinkDown and MQError."""

    def __init__(self, link: Link, initiation_q: str) -> None:
        self._link = link
        self._initiation_q = initiation_q
        self._handle = 0

    @property
    def q_mgr_name(self) -> str:
        """See :class:`~trigmon.bridge.intake.Intake`."""
        return self._link.connection().q_mgr_name

    @property
    def initiation_q(self) -> str:
        """See :class:`~trigmon.bridge.intake.Intake`."""
        return self._initiation_q

    @property
    def unit(self) -> int:
        """The unit of work of what is taken next, or was taken last."""
        return self._link.connection().unit

    def open(self) -> None:
        """Opens the initiation queue."""
        opened = self._link.call(Open(object_name=self._initiation_q, options=_OPEN))
        assert isinstance(opened, Opened)
        self._handle = opened.handle

    def get(self, runs: NewRuns | None = None) -> WereGot:
        """Gets trigger messages. With ``runs`` the queue manager's own become runs, and are accepted, in the same call.

        Raises NoMsgAvailable when none came in time.
        """
        got = self._link.call(
            GetMany(
                handle=self._handle,
                count=_AT_ONCE,
                options=_GET,
                wait_interval_ms=WAIT_MS,
                unit=self.unit,
                runs=runs,
            )
        )
        assert isinstance(got, WereGot)
        return got

    def take(self) -> list[WasGot]:
        """See :class:`~trigmon.bridge.intake.Intake`."""
        try:
            return self.get().messages
        except NoMsgAvailable:
            return []

    def dead_letter(self, got: WasGot, reason: int, now_ms: int) -> str:
        """See :class:`~trigmon.bridge.intake.Intake`."""
        known = Feedback(reason) if reason in set(Feedback) else Reason(reason)
        return put_dead_letter(
            self._link.call,
            DeadLetter(known, ""),
            got.descriptor,
            got.data,
            initiation_q=self._initiation_q,
            q_mgr_name=self.q_mgr_name,
            now_ms=now_ms,
            unit=self.unit,
            sets_context=self._link.connection().administrator,
        )

    def accept(self) -> None:
        """See :class:`~trigmon.bridge.intake.Intake`."""
        self._link.call(Commit(unit=self.unit))

    def give_back(self) -> None:
        """See :class:`~trigmon.bridge.intake.Intake`."""
        self._link.call(Backout(unit=self.unit))

    def close(self) -> None:
        """See :class:`~trigmon.bridge.intake.Intake`."""
        with suppress(LinkDown, MQError):
            self.give_back()
        self._link.close()

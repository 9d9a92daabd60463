"""A connection that is made again when its link was lost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from trigmon.client.connection import Connection
from trigmon.client.reconnect import Fate, fate_of, on_next_link, tried_until, with_handles
from trigmon.client.transport import Link
from trigmon.mq.calls import Backout, Call, Close, Commit, Disconnect, Open, Outcome
from trigmon.mq.enums import UnitOutcome
from trigmon.mq.errors import (
    BackedOut,
    ConnectionBroken,
    HobjError,
    MQError,
    NotAuthorized,
    ObjectInUse,
    QMgrStopping,
)
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Done, Opened, OutcomeWas, Refused, Reply

_PAUSE_S: Final = 0.2
_ENDS_A_UNIT: Final = (Commit, Backout, Disconnect)

Connect = Callable[[], tuple[Link, str]]
"""Returns a greeted link and its client id."""


class ReconnectableConnection(Connection):
    """What :func:`trigmon.connect` returns with ``reconnect_s``. ``connect`` makes a link, also the first one.

    After a lost link it connects again for ``longest_s``. Objects are opened again, in their order, and waits go on
    with what is left of their interval. A unit of work in flight was backed out: its calls raise BackedOut until
    :meth:`commit`, which raises it as well, or :meth:`backout`. Of a commit that was on its way the outcome is asked.
    ConnectionBroken says that what became of one call is not known, and the next call may be made; or that nothing
    answered in time. The place of a browse, of a group, and a temporary dynamic queue do not outlast their link.
    """

    def __init__(self, connect: Connect, longest_s: float) -> None:
        super().__init__(*tried_until(time.monotonic() + longest_s, connect))
        self._connect = connect
        self._longest_s = longest_s
        # By the handle that the application has: how it was opened, the queue behind it, and its present handle.
        self._opened: dict[int, tuple[Open, str]] = {}
        self._handles: dict[int, int] = {}
        self._had_unit = False
        self._is_unit_lost = False
        self._sent: Call | None = None

    @property
    def alive(self) -> bool:
        """Whether calls can be made: not disconnected."""
        return not self._ended

    def call(self, call: Call, *, is_sound: bool = False) -> Reply:
        """Sends any call and returns its reply, on this link or a later one."""
        if self._is_unit_lost and self._ends_lost_unit(call):
            return Done()
        self._had_unit = self._in_unit
        return super().call(call, is_sound=is_sound)

    def answers(self, calls: Iterable[Call], window: int = 8, *, is_sound: bool = False) -> list[Reply]:
        """Sends several calls. Raises BackedOut, ConnectionBroken where the link was lost under them."""
        try:
            return super().answers(self._of_living_unit(calls), window, is_sound=is_sound)
        except MQError as error:
            if not self._transport.broken:
                raise
            self._connect_again(error)
            if self._in_unit:
                raise self._lose_unit(error) from error
            raise ConnectionBroken(f"{error.about}; the connection was made again: repeat what was asked") from error

    def give_up_unit(self) -> None:
        """Backs out the unit of work if there is one, also one that was lost."""
        super().give_up_unit()
        self._is_unit_lost = False

    def _of_living_unit(self, calls: Iterable[Call]) -> Iterator[Call]:
        for call in calls:
            if self._is_unit_lost:
                self._ends_lost_unit(call)
            yield call

    def _send_ahead(self, call: Call, *, is_sound: bool = False) -> int:
        return super()._send_ahead(with_handles(call, self._handles), is_sound=is_sound)

    # -- one call -------------------------------------------------------------------------------------------

    def _exchange(self, call: Call, *, is_sound: bool) -> Reply:
        began = time.monotonic()
        while True:
            self._sent = call
            try:
                reply = self._asked(call, is_sound=is_sound)
            except MQError as error:
                if not self._transport.broken:
                    raise
                fate = fate_of(call, had_unit=self._had_unit, is_undone=isinstance(error, QMgrStopping))
                was = self.client_id, self._unit
                self._connect_again(error)
                if fate is not Fate.REPEATED:
                    return self._without_repetition(call, fate, error, *was)
                if self._had_unit:
                    self._lose_unit(error)
                call = on_next_link(call, self._unit, time.monotonic() - began)
            else:
                self._note(call, reply)
                return reply

    def _asked(self, call: Call, *, is_sound: bool) -> Reply:
        """Returns the reply on the present link. Raises QMgrStopping for a wait that was ended by the stop."""
        reply = super()._exchange(with_handles(call, self._handles), is_sound=is_sound)
        if isinstance(reply, Refused) and reply.reason == Reason.Q_MGR_STOPPING:
            self._transport.close()
            raise QMgrStopping(reply.about)
        return reply

    def _settle(self, call: Call, reply: Reply) -> None:
        """Settles the call as it was sent last; one that was not sent again has been settled."""
        if self._sent is not None:
            super()._settle(self._sent, reply)

    def _note(self, call: Call, reply: Reply) -> None:
        """Notes what is open."""
        if isinstance(call, Open) and isinstance(reply, Opened):
            self._opened[reply.handle] = call, reply.q_name
        elif isinstance(call, Close) and isinstance(reply, Done):
            self._opened.pop(call.handle, None)
            self._handles.pop(call.handle, None)

    def _without_repetition(self, call: Call, fate: Fate, error: MQError, client_id: str, unit: int) -> Reply:
        """Returns the reply to a call that is not sent again. Raises BackedOut, ConnectionBroken."""
        self._sent = None
        outcome = self._outcome_of(client_id, unit) if fate is Fate.ASKED else UnitOutcome.BACKED_OUT
        self._in_unit = self._marked = False
        if outcome is UnitOutcome.COMMITTED:
            return Done()
        if self._had_unit:
            self._lose_unit(error)
        if isinstance(call, _ENDS_A_UNIT):
            self._is_unit_lost = False
        if fate is Fate.DONE:
            self._batches = 0
            return Done()
        if fate is not Fate.UNKNOWN and outcome is UnitOutcome.BACKED_OUT:
            raise _backed_out(error) from error
        text = "the connection was made again, and what became of this call is not known"
        raise ConnectionBroken(f"{error.about}; {text}") from error

    def _outcome_of(self, client_id: str, unit: int) -> UnitOutcome:
        reply = self._asked(Outcome(client_id=client_id, unit=unit), is_sound=True)
        return reply.outcome if isinstance(reply, OutcomeWas) else UnitOutcome.UNKNOWN

    # -- the next link --------------------------------------------------------------------------------------

    def _connect_again(self, error: MQError) -> None:
        """Connects again and opens what was open. Raises ConnectionBroken where that fails, NotAuthorized."""
        self._ahead.clear()
        deadline = time.monotonic() + self._longest_s
        while True:
            try:
                self._transport, self.client_id = tried_until(deadline, self._connect)
                self._handles = self._opened_again()
            except MQError as again:
                self._transport.close()
                # A socket that is just being made lets nobody in yet.
                may_pass = isinstance(again, ConnectionBroken | QMgrStopping | ObjectInUse | NotAuthorized)
                if not may_pass or time.monotonic() >= deadline:
                    raise ConnectionBroken(f"{error.about}; and again: {again.about}") from again
                time.sleep(_PAUSE_S)
            else:
                self._unit = 1
                return

    def _opened_again(self) -> dict[int, int]:
        """Returns the present handles, by those that the application has. Raises MQError."""
        handles = {}
        for handle, (call, q_name) in self._opened.items():
            reply = self._transport.receive(self._transport.send(call))
            if isinstance(reply, Refused):
                raise MQError.of(reply.reason, reply.about)
            if not isinstance(reply, Opened) or reply.q_name != q_name:
                raise HobjError(f"the queue {q_name} that was opened as {call.object_name} is gone with its connection")
            handles[handle] = reply.handle
        return handles

    # -- a lost unit of work --------------------------------------------------------------------------------

    def _lose_unit(self, error: MQError) -> BackedOut:
        """Notes that the unit of work in flight was backed out."""
        self._is_unit_lost = True
        self._in_unit = self._marked = False
        self._backouts += 1
        return _backed_out(error)

    def _ends_lost_unit(self, call: Call) -> bool:
        """Returns whether a call is the backout of the lost unit. Raises BackedOut for its other calls."""
        if isinstance(call, _ENDS_A_UNIT):
            self._is_unit_lost = False
            if isinstance(call, Backout):
                self._batches = 0
                return True
        elif not getattr(call, "unit", 0):
            return False
        raise BackedOut("the connection was lost in this unit of work, which was backed out: begin it anew")


def _backed_out(error: MQError) -> BackedOut:
    return BackedOut(f"the connection was lost in a unit of work, and made again: {error.about}")

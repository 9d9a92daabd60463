"""MQCB and MQCTL: callbacks that get a connection's messages, on a thread of their own.

One thread serves all consumers of a connection in turns. It waits in the queue manager for one of them at a time and
for a fraction of a second, so that it hears that it is to stop, and so that each consumer has its turn.
"""

from __future__ import annotations

import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import nullcontext
from typing import Final

from trigmon.mq.descriptors import LARGEST_LONG
from trigmon.mq.enums import GetOption
from trigmon.mq.errors import MQError
from trigmon.mq.reasons import Reason
from trigmon.mqi.connection_handles import Session
from trigmon.mqi.layout import Values
from trigmon.mqi.md import number
from trigmon.mqi.message_calls import Got, get_message
from trigmon.mqi.mqi_numbers import CallbackOption, CallType, MqiError, MqiReason, Operation
from trigmon.mqi.structures import MQCBC, MQGMO

Callback = Callable[[int, bytes, bytes, bytes | None, bytes], object]
"""Called with connection handle, MQMD, MQGMO, the data (None for none) and MQCBC."""

_TURN_MS: Final = 200
_MESSAGE_CONSUMER, _EVENT_HANDLER = 1, 2
_WAIT: Final = int(GetOption.WAIT)
_NOTHING: Final = int(Reason.NO_MSG_AVAILABLE)
_BROWSES: Final = int(GetOption.BROWSE_FIRST | GetOption.BROWSE_NEXT | GetOption.BROWSE_MSG_UNDER_CURSOR)
_BROKEN: Final = frozenset((int(Reason.CONNECTION_BROKEN), int(Reason.Q_MGR_STOPPING)))


class Consumer:
    """A callback that was registered for an object, 0 for the connection's event handler."""

    def __init__(self, hobj: int, cbd: Values, md: bytes, gmo: bytes) -> None:
        self.hobj = hobj
        self.cbd = cbd
        self.md = md
        self.gmo = gmo
        self.is_suspended = False
        self.has_reported_none = False
        self.waits_since = time.monotonic()

    @property
    def max_length(self) -> int:
        """The longest message that it takes, in bytes."""
        asked = number(self.cbd["MaxMsgLength"])
        return LARGEST_LONG if asked < 0 else asked


class Consumers:
    """The callbacks of a connection, and whether they are called."""

    def __init__(self, session: Session, call: Callback) -> None:
        self._session = session
        self._call = call
        self._all: dict[int, Consumer] = {}
        self._thread: threading.Thread | None = None
        self._is_to_end = threading.Event()
        self._is_suspended = False
        self._idle = threading.Event()
        self._state = threading.Lock()

    def operate(self, operation: int, hobj: int, cbd: Values, md: bytes, gmo: bytes) -> None:
        """Registers, deregisters, suspends or resumes a callback (MQCB). Raises MqiError."""
        if operation & Operation.REGISTER:
            self._register(hobj, cbd, md, gmo)
        found = self._all.get(hobj)
        if found is None:
            raise MqiError(MqiReason.CALLBACK_NOT_REGISTERED, f"object handle {hobj} has no callback")
        if operation & Operation.DEREGISTER:
            del self._all[hobj]
            if number(found.cbd["Options"]) & CallbackOption.DEREGISTER_CALL:
                self._tell(found, CallType.DEREGISTER_CALL)
        elif operation & (Operation.SUSPEND | Operation.RESUME):
            found.is_suspended = bool(operation & Operation.SUSPEND)
        elif not operation & Operation.REGISTER:
            raise MqiError(MqiReason.OPERATION_ERROR, f"operation {operation:#x} of MQCB")

    def control(self, operation: int) -> None:
        """Starts, stops, suspends or resumes all (MQCTL). Raises MqiError."""
        self._session.check_thread()
        if operation in (Operation.SUSPEND, Operation.RESUME):
            if not self._session.consumer_thread:
                raise MqiError(MqiReason.OPERATION_NOT_ALLOWED, "no callbacks are being called")
            (self._suspend if operation == Operation.SUSPEND else self._resume)()
        elif operation in (Operation.START, Operation.START_WAIT):
            self._start(waits=operation == Operation.START_WAIT)
        elif operation == Operation.STOP:
            if self._session.is_idle:
                with self._session.turn():
                    self._want_stop()
            self.stop()
        else:
            raise MqiError(MqiReason.OPERATION_ERROR, f"operation {operation:#x} of MQCTL")

    def stop(self) -> None:
        """Ends the calls; from a callback, when that has returned. Nothing happens where none are made."""
        self._want_stop()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()
            self._thread = None

    def _want_stop(self) -> None:
        """Asks the thread to end; no other call comes in from here on."""
        with self._state:
            self._is_to_end.set()
            self._session.is_idle = False

    def _suspend(self) -> None:
        """Suspends, and waits until no callback is under way, unless it is one that asks."""
        self._is_suspended = True
        if self._session.consumer_thread == threading.get_ident():
            return
        while self._is_suspended and self._session.consumer_thread and not self._idle.wait(_TURN_MS / 1000):
            continue

    def _resume(self) -> None:
        """Gives the connection back to the callbacks, behind another thread's call."""
        with self._session.turn() if self._session.is_idle else nullcontext(), self._state:
            self._is_suspended = self._session.is_idle = False
            self._idle.clear()

    def _is_idle_turn(self) -> bool:
        with self._state:
            if not self._is_suspended or self._is_to_end.is_set():
                return False
            self._session.is_idle = True
            self._idle.set()
            return True

    def forget(self, hobj: int) -> None:
        """Forgets the callback of an object that was closed."""
        self._all.pop(hobj, None)

    def _register(self, hobj: int, cbd: Values, md: bytes, gmo: bytes) -> None:
        kind = number(cbd["CallbackType"])
        if kind != (_MESSAGE_CONSUMER if hobj else _EVENT_HANDLER):
            raise MqiError(
                MqiReason.CALLBACK_TYPE_ERROR, "a queue has a message consumer, a connection an event handler"
            )
        if hobj:
            self._session.opened(hobj)
        made = self._all[hobj] = Consumer(hobj, cbd, md, gmo)
        if number(cbd["Options"]) & CallbackOption.REGISTER_CALL:
            self._tell(made, CallType.REGISTER_CALL)

    def _start(self, *, waits: bool) -> None:
        if self._session.is_held and not waits and self._session.consumer_thread != threading.get_ident():
            raise MqiError(MqiReason.HCONN_ASYNC_ACTIVE, "the callbacks are being called already")
        if self._session.consumer_thread:
            raise MqiError(MqiReason.OPERATION_NOT_ALLOWED, "the callbacks are being called already, or suspended")
        with self._session.turn():
            self._begin(waits=waits)
        if waits:
            self._run()

    def _begin(self, *, waits: bool) -> None:
        if self._session.consumer_thread:
            raise MqiError(MqiReason.OPERATION_NOT_ALLOWED, "another thread was faster")
        if not self._all:
            raise MqiError(MqiReason.NO_CALLBACKS_ACTIVE, "no callback is registered")
        self._is_to_end.clear()
        self._idle.clear()
        self._is_suspended = self._session.is_idle = False
        if waits:
            self._session.consumer_thread = threading.get_ident()
            return
        begun = threading.Event()

        def run() -> None:
            self._session.consumer_thread = threading.get_ident()
            begun.set()
            self._run()

        self._thread = threading.Thread(target=run, name="trigmon-mqi-callbacks", daemon=True)
        self._thread.start()
        begun.wait()

    def _run(self) -> None:
        try:
            self._tell_all(CallbackOption.START_CALL, CallType.START_CALL)
            while not self._is_to_end.is_set():
                self._turn()
            self._tell_all(CallbackOption.STOP_CALL, CallType.STOP_CALL)
        finally:
            self._session.consumer_thread = 0
            self._session.is_idle = False

    def _turn(self) -> None:
        """Gives each consumer a message that is there; where there is none, waits for the first one's."""
        consumers = [one for hobj, one in self._all.items() if hobj and not one.is_suspended]
        if self._is_idle_turn() or not consumers:
            self._is_to_end.wait(_TURN_MS / 1000)
            return
        had_one = [self._serve(consumer, 0) for consumer in consumers if not self._is_held_up]
        if not any(had_one) and not self._is_held_up:
            self._serve(consumers[0], _TURN_MS if len(consumers) == 1 else _TURN_MS // 10)

    @property
    def _is_held_up(self) -> bool:
        """Whether a callback has stopped or suspended: then no other one follows it."""
        return self._is_to_end.is_set() or self._is_suspended

    def _serve(self, consumer: Consumer, wait_ms: int) -> bool:
        """Gets one message and calls back; returns whether there was one."""
        if consumer.hobj not in self._session.objects or self._all.get(consumer.hobj) is not consumer:
            return False
        gmo = MQGMO.unpack(consumer.gmo)
        bits = number(gmo["Options"])
        gmo["Options"] = bits | _WAIT if wait_ms else bits & ~_WAIT
        try:
            opened = self._session.opened(consumer.hobj)
            got = get_message(self._session, opened, consumer.md, MQGMO.pack(gmo), consumer.max_length, wait_ms=wait_ms)
        except (MQError, MqiError) as error:
            self._nothing(consumer, bits, number(gmo["WaitInterval"]), int(error.comp_code), int(error.reason))
            return False
        consumer.has_reported_none = False
        consumer.waits_since = time.monotonic()
        taken = bits & _BROWSES or got.reason == Reason.TRUNCATED_MSG_FAILED
        self._tell(consumer, CallType.MSG_NOT_REMOVED if taken else CallType.MSG_REMOVED, got=got)
        return True

    def _nothing(self, consumer: Consumer, bits: int, interval_ms: int, comp_code: int, reason: int) -> None:
        """Tells that no message came in time, once until one comes; and any other failure, which suspends it."""
        if reason == _NOTHING:
            interval_ms = interval_ms if bits & _WAIT else 0
            is_over = 0 <= interval_ms <= (time.monotonic() - consumer.waits_since) * 1000
            if is_over and not consumer.has_reported_none:
                consumer.has_reported_none = True
                self._tell(consumer, CallType.EVENT_CALL, comp_code=comp_code, reason=reason)
            return
        consumer.is_suspended = True
        self._tell(consumer, CallType.EVENT_CALL, comp_code=comp_code, reason=reason)
        if reason in _BROKEN:
            self._is_to_end.set()
            if handler := self._all.get(0):
                self._tell(handler, CallType.EVENT_CALL, comp_code=comp_code, reason=reason)

    def _tell_all(self, option: CallbackOption, call_type: CallType) -> None:
        for consumer in list(self._all.values()):
            if number(consumer.cbd["Options"]) & option:
                self._tell(consumer, call_type)

    def _tell(
        self, consumer: Consumer, call_type: CallType, *, got: Got | None = None, comp_code: int = 0, reason: int = 0
    ) -> None:
        """Calls back. What the callback raises is printed, as C cannot pass it on."""
        fields: Values = {
            "Version": MQCBC.current_version,
            "CallType": int(call_type),
            "Hobj": consumer.hobj,
            "CompCode": got.comp_code if got else comp_code,
            "Reason": got.reason if got else reason,
            "DataLength": got.length if got else 0,
            "BufferLength": len(got.data) if got else 0,
        }
        md, gmo = (got.md, got.gmo) if got else (consumer.md, consumer.gmo)
        try:
            self._call(self._session.number, md, gmo, got.data if got and got.data else None, MQCBC.pack(fields))
        except Exception:  # a callback's own
            traceback.print_exc(file=sys.stderr)

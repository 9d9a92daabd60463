"""What a trigger monitor does: an application that has an initiation queue open and starts what its messages ask for.

A trigger message is got under syncpoint, and the run it becomes is recorded in the same turn that commits the get: so a
launch is written down before it happens, and a monitor that dies loses none. It never waits for a program.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from typing import Any, Final

from trigmon.launch.port import LaunchError, LaunchPlan, Order
from trigmon.log import Seldom, logger
from trigmon.monitor import ledger
from trigmon.monitor.controls import News
from trigmon.monitor.dead_letters import put_dead_letter
from trigmon.monitor.link import Link, LinkDown
from trigmon.monitor.plan import (
    DeadLetter,
    Hold,
    Start,
    Verdict,
    believed,
    is_the_queue_managers,
    judge,
    process_for,
    read_trigger,
    slot_of,
)
from trigmon.monitor.posts import Post
from trigmon.monitor.programs import Programs, now_ms
from trigmon.monitor.reading import elsewhere, runs_of
from trigmon.monitor.resuming import resume
from trigmon.mq.calls import Backout, Display, Get, Listing, Open, Opened, Recorded, RecordRun, Reply, WasGot
from trigmon.mq.descriptors import TriggerMessage
from trigmon.mq.enums import Feedback, GetOption, ObjectType, OpenOption
from trigmon.mq.errors import MQError, NoMsgAvailable, NotAuthorized
from trigmon.mq.names import is_object_name
from trigmon.mq.reasons import Reason
from trigmon.rules.runs import repeated

log = logger()

# How long one get waits. A message ends the wait at once; the interval only bounds how late a stop is noticed.
_WAIT_MS: Final = 500
_GET: Final = int(GetOption.WAIT | GetOption.SYNCPOINT | GetOption.FAIL_IF_QUIESCING)
_OPEN: Final = int(OpenOption.INPUT_SHARED | OpenOption.FAIL_IF_QUIESCING)
_PAUSE_S: Final = 1.0
# How often it is looked whether another monitor is gone, and how often one trouble is told.
_LOOK_ROUND_S: Final = 2.0
_SAY_AGAIN_S: Final = 60.0


class Watcher:
    """One monitor's eye on one initiation queue.

    ``post`` tells it from others in the ledger, ``address`` is what started programs connect to ("": the queue
    manager's name), ``ready`` is called whenever the initiation queue has been opened, ``alive`` in each turn of the
    loop.
    """

    def __init__(
        self,
        link: Link,
        programs: Programs,
        *,
        initiation_q: str,
        post: Post,
        address: str = "",
        ready: Callable[[], None] = lambda: None,
        alive: Callable[[], None] = lambda: None,
    ) -> None:
        self._link = link
        self._programs = programs
        self._initiation_q = initiation_q
        self._post = post
        self._name = post.name
        self._look_round_at = 0.0
        self._seldom = Seldom(log, interval_s=_SAY_AGAIN_S)
        self._address = address
        self._ready = ready
        self._alive = alive

    def serve(self, stop: threading.Event) -> None:
        """Serves the initiation queue until ``stop``, through any absence of the queue manager.

        Raises MQError where waiting would not help: no such queue, no authority.
        """
        while not stop.is_set():
            self._alive()
            try:
                self._serve_connection(stop)
            except LinkDown as down:
                if not down.may_pass:
                    raise down.error from None
                log.warning("queue manager not reachable", error=str(down), again_in_s=round(self._link.pause_s, 1))
                stop.wait(self._link.pause_s)

    def _serve_connection(self, stop: threading.Event) -> None:
        if not self._link.connection().monitor:
            raise NotAuthorized("this user may not keep the ledger of runs: name it in server.monitors")
        opened = self._link.call(Open(object_name=self._initiation_q, options=_OPEN))
        assert isinstance(opened, Opened)
        resume(self._link, self._programs, self._name, self._order_again)
        log.info("monitor serves", initiation_q=self._initiation_q, monitor=self._name)
        self._ready()
        news = News(self._link.call, self._name)
        while not stop.is_set():
            self._programs.check()
            self._alive()
            self._look_round()
            self._heed(news)
            unit = self._link.connection().unit
            try:
                got = self._link.call(Get(handle=opened.handle, options=_GET, wait_interval_ms=_WAIT_MS, unit=unit))
                assert isinstance(got, WasGot)
                self._take(got, unit)
            except NoMsgAvailable:
                news.rang()
            except MQError as error:
                if not self._may_go_on(error, unit):
                    raise
                stop.wait(_PAUSE_S)

    def _heed(self, news: News) -> None:
        """What operators want of this monitor goes to the reaper, and what they cancelled is held no longer."""
        if (heard := news.come()) is not None:
            self._programs.heed(*heard)
            for run_id in news.no_longer_held(self._programs.held()):
                self._programs.drop(run_id)
                log.info("run no longer held, it was cancelled", run=run_id)

    def _look_round(self) -> None:
        """Once in a while: the runs of monitors that are gone become this one's."""
        if time.monotonic() < self._look_round_at:
            return
        for gone in self._post.gone():
            log.info("another monitor is gone, and its runs are taken over", monitor=gone)
            resume(self._link, self._programs, self._name, self._order_again, of=gone)
        self._look_round_at = time.monotonic() + _LOOK_ROUND_S

    def _may_go_on(self, error: MQError, unit: int) -> bool:
        """Whether a refused call is no reason to end: the message is put back, and tried again after a pause."""
        if error.reason in (Reason.Q_DELETED, Reason.OBJECT_CHANGED, Reason.HOBJ_ERROR):
            return False
        self._seldom.warning("no trigger message can be taken", error=str(error))
        if error.reason != Reason.GET_INHIBITED:
            self._link.call(Backout(unit=unit))
        return True

    # -- one trigger message --------------------------------------------------------------------------------

    def _take(self, got: WasGot, unit: int) -> None:
        """Decides about one message, writes the decision down with the commit of its get, then acts on it."""
        run_id = ledger.new_run_id(now_ms())
        trigger = read_trigger(got.descriptor, got.data)
        if isinstance(trigger, DeadLetter):
            self._refuse(got, unit, run_id, TriggerMessage(q_name=""), trigger)
            return
        definition, others = self._known_of(trigger.process_name)
        told = believed(got.descriptor, trigger, definition)
        if isinstance(told, DeadLetter):
            self._refuse(got, unit, run_id, trigger, told)
            return
        trigger = told
        order = self._order(run_id, trigger, definition, _occasion(got))
        verdict, plan = self._judge(order, others)
        if isinstance(verdict, DeadLetter):
            self._refuse(got, unit, run_id, trigger, verdict)
            return
        known: dict[str, Any] = {"state": ledger.HELD, "why": verdict.why} if isinstance(verdict, Hold) else {}
        if plan is not None:
            known = {"state": ledger.DUE, "argv": plan.argv, "directory": str(self._programs.directory(run_id))}
        stands = self._record(order, unit, **self._came(got), **known)
        if plan is not None and stands.state != ledger.HELD:
            self._programs.start(order, plan, (got.descriptor, got.data))
        else:
            self._programs.hold(order)
            log.info("run held", run=run_id, queue=trigger.q_name, why=stands.why)

    def _judge(self, order: Order, others: Collection[ledger.Fields]) -> tuple[Verdict, LaunchPlan | None]:
        """The verdict, and with :class:`Start` the plan: an order that cannot be planned can never start."""
        programs = self._programs
        verdict = judge(
            order,
            before_it=programs.before(slot_of(order.trigger)),
            elsewhere=[f"run {other['run_id']} of {other['monitor']}" for other in others],
            pause=programs.paused(order.trigger),
            default_instances=programs.limits.instances,
            appl_types=programs.launchers,
        )
        if not isinstance(verdict, Start):
            return verdict, None
        try:
            return verdict, programs.launchers[order.trigger.appl_type].plan(order)
        except LaunchError as error:
            return DeadLetter(Feedback.APPL_CANNOT_BE_STARTED, str(error)), None

    def _record(self, order: Order, unit: int, **known: Any) -> Recorded:
        """Writes the run down; how it stands then is the ledger's word."""
        record = ledger.recorded(
            order.run_id, order.trigger, monitor=self._name, now_ms=now_ms(), occasion=order.occasion, **known
        )
        reply = self._link.call(RecordRun(run_id=order.run_id, record=record, unit=unit))
        assert isinstance(reply, Recorded)
        return reply

    def _came(self, got: WasGot) -> dict[str, str]:
        """What a record says of how its trigger message came here."""
        return {"initiation_q": self._initiation_q, "repeats": repeated(got.descriptor)}

    def _refuse(self, got: WasGot, unit: int, run_id: str, trigger: TriggerMessage, verdict: DeadLetter) -> None:
        """Dead-letters a message and records the failed run, all in the unit of work of its get."""
        why = self._dead_letter(got, unit, run_id, verdict)
        failed = ledger.failed(why, now_ms()) | self._came(got)
        record = ledger.recorded(
            run_id, trigger, monitor=self._name, now_ms=now_ms(), occasion=_occasion(got), **failed
        )
        self._link.call(RecordRun(run_id=run_id, record=record, unit=unit))

    def _dead_letter(self, got: WasGot, unit: int, run_id: str, verdict: DeadLetter) -> str:
        where = put_dead_letter(
            self._link.call,
            verdict,
            got.descriptor,
            got.data,
            initiation_q=self._initiation_q,
            q_mgr_name=self._link.connection().q_mgr_name,
            now_ms=now_ms(),
            unit=unit,
        )
        log.error("program not started", run=run_id, reason=int(verdict.reason), why=verdict.why, trigger_message=where)
        return f"{verdict.why}; {where}"

    # -- what to start --------------------------------------------------------------------------------------

    def _known_of(self, process_name: str) -> tuple[dict[str, Any] | None, Collection[ledger.Fields]]:
        """The process's row as it is defined now, None when it is not, and its runs under other monitors."""
        asked = [_display(process_name)] if is_object_name(process_name) else []
        replies = self._link.pipeline([*runs_of(process_name), *asked])
        others = elsewhere(self._link.call, process_name, replies[:2], self._name)
        return _row(replies[2]) if asked else None, others

    def _definition(self, process_name: str) -> dict[str, Any] | None:
        """The process's row as it is defined now, None when it is not."""
        return _row(self._link.call(_display(process_name))) if is_object_name(process_name) else None

    def _order(self, run_id: str, trigger: TriggerMessage, definition: dict[str, Any] | None, occasion: str) -> Order:
        return Order(
            run_id=run_id,
            q_mgr_name=self._link.connection().q_mgr_name,
            trigger=trigger,
            process=process_for(trigger, definition),
            address=self._address,
            occasion=occasion,
        )

    def _order_again(self, record: ledger.Fields) -> Order:
        trigger = ledger.trigger_of(record)
        definition = self._definition(trigger.process_name)
        return self._order(str(record["run_id"]), trigger, definition, str(record["occasion"]))


def _display(process_name: str) -> Display:
    return Display(object_type=ObjectType.PROCESS.name, name=process_name)


def _row(reply: Reply) -> dict[str, Any] | None:
    return reply.rows[0] if isinstance(reply, Listing) and reply.rows else None


def _occasion(got: WasGot) -> str:
    """Which row of the law fired: our queue managers say it in ApplOriginData, four characters IBM leaves blank."""
    descriptor = got.descriptor
    return descriptor.appl_origin_data.strip() if is_the_queue_managers(descriptor) else ""

"""The outcome of a run: whether it did its work, whether it is tried again, or the queue is held (circuit breaker).

A program that fails and leaves messages is started again after a pause that grows, without waiting for TRIGINT. One
that could not start has failed too: where nothing is tried again, its trigger message becomes a dead letter. On a
queue of FIRST or DEPTH, whose close triggers again what is left, programs that remove nothing would be started without
end (seed 004 calls it the most famous loop): after so many the breaker holds the queue, with its reason.
"""

from __future__ import annotations

from msgspec.structs import replace

from trigmon.mq.attributes import Process
from trigmon.mq.enums import BackoutRequeue, Coalesce, Feedback, UnknownEnd
from trigmon.mq.quantities import counted
from trigmon.mq.replies import Done
from trigmon.mq.run import Run, RunFields, RunState
from trigmon.rules.messages.dead_letter_queue import dead_data, why_not
from trigmon.rules.model.bridged_queue import has_moved_there, is_seen_there
from trigmon.rules.model.changes import AnyChange, SetCause, SetPause, Unserve, WriteRun
from trigmon.rules.model.decision import Decision, Ids
from trigmon.rules.model.events import DecisionEvent, QueueHeld, TriggerMessageDropped
from trigmon.rules.model.facts import Facts, RunFacts, WideFacts
from trigmon.rules.model.internal_calls import DeadLetter, JudgeRun
from trigmon.rules.model.queue_facts import QueueFacts
from trigmon.rules.model.run_facts import BREAKER, Cause, Paused, Serving
from trigmon.rules.model.run_record import written
from trigmon.rules.model.stored_messages import Found, Selection, StoredMessage
from trigmon.rules.runs.admission import is_for_one, pause_ms, process_of, under_way
from trigmon.rules.runs.bridged_runs import BLANK, KEPT
from trigmon.rules.runs.program_tracking import counts
from trigmon.rules.runs.run_ledger import descriptor_of, trigger_of

_ON_ITS_OWN = Process(name="")
_KEPT = (*KEPT, "verdict", "schedule", "moment_ms")


def look_for_judge_run(call: JudgeRun, facts: Facts, now: int) -> Selection | None:
    """Returns the message that the next program would get, where the breaker may open: the diagnosis names it."""
    queue = facts.queue
    if queue is None or "@" in queue.definition.name or not is_for_one(queue) or not _is_left(facts):
        return None
    return Selection(queue.definition.name, now)


def decide_judge_run(call: JudgeRun, facts: RunFacts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Decides what follows from a run's end: nothing, a further try, or the breaker."""
    serving = facts.itself
    if serving is None:
        return Decision(Done())
    changes: list[AnyChange] = [Unserve(call.run_id)]
    if facts.run is None:
        return Decision(Done(), changes)
    run = facts.run.changed(**counts(serving))
    if _can_never_start(run, facts):
        return _given_up(facts.run, run, facts, now, ids)
    changes.append(written(run, now, facts.run))
    if not _is_judged(run, facts):
        return Decision(Done(), changes)
    cause = _judged(run, serving, facts, now)
    changes.append(SetCause(cause))
    events: tuple[DecisionEvent, ...] = ()
    process = facts.process or _ON_ITS_OWN
    opens = _opens_breaker(cause, process, run, facts)
    if opens and ("queue", cause.q_name) not in {(pause.what, pause.name) for pause in facts.pauses}:
        why = _diagnosis(cause, run, facts, found)
        changes.append(SetPause(Paused("queue", cause.q_name, BREAKER, now, why)))
        events = (QueueHeld(cause.q_name, why),)
    tries = opens or (has_failed(run, process) and _tries_again(cause, process, run, facts))
    is_waited_for = _is_waited_for(process, facts)
    if tries and not is_waited_for and (run.origin.schedule or _is_left(facts)):
        changes.append(_next_try(run, process, serving, facts, now, ids))
    elif run.is_unstartable and not is_waited_for:
        given_up = _given_up(facts.run, run, facts, now, ids)
        return replace(given_up, changes=[*given_up.changes, SetCause(cause)])
    return Decision(Done(), changes, events=events)


def _can_never_start(run: Run, facts: RunFacts) -> bool:
    """Returns whether a run that could not start lacks what no further try has: its queue, its process, its record."""
    is_without_process = bool(run.trigger.process_name) and facts.process is None
    is_without_queue = bool(run.trigger.q_name) and facts.queue is None
    return run.is_unstartable and (is_without_queue or is_without_process or trigger_of(run) is None)


def _is_judged(run: Run, facts: RunFacts) -> bool:
    """Returns whether an end may bring a further try: not where the queue is gone. A schedule may have no queue."""
    is_for_something = facts.queue is not None or (bool(run.origin.schedule) and not run.trigger.q_name)
    return is_for_something and _tells_something(run)


def _given_up(before: Run, run: Run, facts: RunFacts, now: int, ids: Ids) -> Decision:
    """Returns the decision that makes a dead letter of the trigger message of a run that could not start."""
    gone = Unserve(run.run_id)
    trigger = trigger_of(run)
    if trigger is None:
        return Decision(Done(), [gone, written(run, now, before)])
    dead_letter = DeadLetter(
        q_name=trigger.q_name,
        initiation_q=run.origin.initiation_q,
        reason=Feedback.APPL_CANNOT_BE_STARTED,
        message=trigger,
        descriptor=descriptor_of(run, run.origin.repeats, facts.q_mgr.name, ids.msg_id(ids.message()), now),
    )
    hindered = _not_placed(dead_letter, facts.dead_letter or facts, now)
    if hindered:
        dropped = run.changed(why=f"{run.why}; its trigger message was dropped: {hindered}")
        event = TriggerMessageDropped(trigger.q_name, f"no program could be started for it: {run.why}; {hindered}")
        return Decision(Done(), [gone, written(dropped, now, before)], events=(event,))
    placed = run.changed(why=f"{run.why}; its trigger message is on {facts.q_mgr.dead_letter_q_name}")
    return Decision(Done(), [gone, written(placed, now, before)], [dead_letter])


def _not_placed(call: DeadLetter, facts: Facts, now: int) -> str:
    """Returns why the dead-letter queue does not get the trigger message of a failed start; "" where it does.

    One about the dead-letter queue itself would trigger that queue again, for ever.
    """
    if not facts.q_mgr.dead_letter_q_name:
        return "the queue manager names no dead-letter queue (DEADQ)"
    if facts.queue is not None and facts.queue.definition.name == call.q_name:
        return f"it is about {call.q_name}, the dead-letter queue itself"
    why = why_not(facts, len(dead_data(call, facts, now)))
    return f"the dead-letter queue refused it: {why}" if why else ""


def has_failed(run: Run, process: Process) -> bool:
    """Returns whether a program did not end by itself with status 0; an UNKNOWN end is not counted as failed."""
    if run.state == RunState.UNKNOWN:
        return process.unknown is UnknownEnd.RETRY
    return run.outcome.exit_status != 0


def _is_waited_for(process: Process, facts: RunFacts) -> bool:
    """Returns whether a waiting run does what a further try would: each trigger message of EVERY has its own."""
    return facts.held > 0 and (is_for_one(facts.queue) or process.coalesce is Coalesce.YES)


def _tells_something(run: Run) -> bool:
    """Returns whether the end says anything of the program: not where an operator or its monitor's stop ended it."""
    return run.state in (RunState.EXITED, RunState.UNKNOWN, RunState.FAILED) and not run.outcome.was_stopped


def _judged(run: Run, serving: Serving, facts: RunFacts, now: int) -> Cause:
    """Returns the cause after this end. Progress is a message that left the queue by it, or nothing being left.

    A success that was never seen on the queue tells neither: its connections may not have named the run. Programs of
    EVERY that ran side by side and failed have failed once: who waits for a further try waits for no other's failure.
    """
    before = facts.cause or Cause(serving.slot, serving.q_name)
    is_fruitless = _is_left(facts) and not serving.committed and not serving.put_aside and not has_moved_there(run)
    fruitless = before.fruitless + 1 if is_fruitless else 0
    process = facts.process or _ON_ITS_OWN
    if not has_failed(run, process):
        if run.state == RunState.UNKNOWN:
            return replace(before, fruitless=fruitless)
        is_unseen = is_fruitless and not serving.first_open_ms and not is_seen_there(run)
        return replace(before, failed=0, fruitless=before.fruitless if is_unseen else fruitless, until_ms=0)
    if before.until_ms > now and not is_for_one(facts.queue):
        return replace(before, fruitless=fruitless)
    failed = before.failed + 1
    return replace(before, failed=failed, fruitless=fruitless, until_ms=now + pause_ms(failed, process.retry_wait_s))


def _is_left(facts: Facts) -> bool:
    """Returns whether messages wait that the program was started for."""
    queue = facts.queue
    return queue is not None and queue.waiting(queue.definition.trigger_msg_priority) > queue.unseen


def _opens_breaker(cause: Cause, process: Process, run: Run, facts: Facts) -> bool:
    """Returns whether runs removed nothing too often, or the last try failed, where each end triggers the next."""
    if not process.breaker or not is_for_one(facts.queue):
        return False
    return cause.fruitless >= process.breaker or (has_failed(run, process) and cause.fruitless > process.retry)


def _tries_again(cause: Cause, process: Process, run: Run, facts: WideFacts) -> bool:
    """Returns whether tries are left. On a queue with a breaker they are counted anew when it was resumed.

    On a queue that wants one program, the failed one's own close may have started another: then that is the try.
    """
    if is_for_one(facts.queue) and under_way(facts, cause.slot, cause.q_name):
        return False
    if run.origin.schedule:
        return run.origin.attempt <= process.retry  # it was not started for messages, so none tells of progress
    if not cause.fruitless:
        return process.retry > 0
    tries = min(run.origin.attempt, cause.fruitless) if is_for_one(facts.queue) else run.origin.attempt
    return tries <= process.retry


def _next_try(run: Run, process: Process, serving: Serving, facts: Facts, now: int, ids: Ids) -> WriteRun:
    """Returns the further run of the same trigger message, held until its pause is over."""
    run_id = f"{now:011x}{ids.message() & 0xFFFFF:05x}"
    attempt = 1 if serving.committed else run.origin.attempt + 1
    why = f"try {attempt} for the trigger message of run {run.run_id}, which {_how_it_ended(run)}"
    fields: RunFields = BLANK | {
        "run_id": run_id,
        "state": RunState.HELD,
        "why": why,
        "retries": run.run_id,
        "attempt": attempt,
        "recorded_ms": now,
        "process": process_of(run, facts),
    }
    if run.bridged.remote_after is not None:
        fields["remote_before"] = run.json["remote_after"]
    return WriteRun(run_id, run.only(_KEPT).changed(**fields), is_news=True)


def _how_it_ended(run: Run) -> str:
    return f"could not start: {run.why}" if run.is_unstartable else run.why or "ended"


def _diagnosis(cause: Cause, run: Run, facts: Facts, found: Found | None) -> str:
    """Returns why the queue is held, for a person: what the runs did, what they met, and what would help."""
    text = (
        f"{counted(cause.fruitless, 'run')} of {cause.slot} in a row removed no message, the last {_how_it_ended(run)}"
    )
    if run.is_unstartable:
        return f"{text}; it is tried again when PROCESS({run.trigger.process_name}) is altered"
    if run.bridged.remote_q_mgr:
        return text + _met_there(run)
    if not run.work.first_open_ms:
        text += ", without having opened the queue for input"
    queue = facts.queue
    message = found.messages[0] if found is not None and found.messages else None
    if queue is None or message is None:
        return text
    return f"{text}; {_met(queue, message)}"


def _met_there(run: Run) -> str:
    seen = run.bridged.remote_after
    if seen is None or not seen.first:
        return ""
    wait = counted(seen.depth, "message")
    return f"; {wait} wait there, the first is {seen.first}, backed out {counted(seen.backouts, 'time')}"


def _met(queue: QueueFacts, message: StoredMessage) -> str:
    definition, backouts = queue.definition, message.descriptor.backout_count
    threshold, by = definition.backout_threshold, definition.backout_requeue
    wait = "1 message waits, and it" if queue.depth == 1 else f"{queue.depth} messages wait, and the first"
    text = f"{wait} is {message.descriptor.msg_id.hex()}, backed out {counted(backouts, 'time')}"
    if not backouts:
        return text
    if not threshold:
        return f"{text}, and no threshold is set (BOTHRESH(0)): BOTHRESH with BOREQ(QMGR) would put it aside"
    if by is not BackoutRequeue.QMGR:
        return f"{text}; BOTHRESH({threshold}) is for the program to check: BOREQ(QMGR) would put it aside"
    return f"{text} of BOTHRESH({threshold})"

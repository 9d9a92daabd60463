"""What needs an operator's attention, as a list: what it is, since when, one sentence, and the command that helps.

A pure function of what the queue manager knows: a queue manager that works as it should has an empty list. What only
its process knows is added by :func:`attention_of_process`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from trigmon.mq.enums import Inhibit, TriggerControl, TriggerType
from trigmon.mq.event_kinds import EVENT_QUEUE, PERFORMANCE_EVENT_QUEUE
from trigmon.mq.quantities import counted, size, span
from trigmon.mq.run import NO_RUN, Run
from trigmon.rules.model.facts import WorldFacts
from trigmon.rules.model.manager_state import ManagerState
from trigmon.rules.model.queue_facts import QueueFacts
from trigmon.rules.model.run_facts import Cause
from trigmon.rules.model.schedule_facts import is_lost
from trigmon.rules.runs.error_output import telling_lines
from trigmon.rules.runs.idle_run import Seen, how_it_ended, left_all
from trigmon.rules.runs.pause import pauses_of, sentence
from trigmon.schedules.moments import fault

NEARLY_FULL = 0.8
"""Of MAXDEPTH."""
LONG_MS = 60_000
TIMES_USUAL = 10
ENOUGH_GETS = 10
"""A message is old that has waited for LONG_MS and TIMES_USUAL what messages of its queue wait, after ENOUGH_GETS."""
LONGEST_LINE = 200
"""Characters of a run's last line."""
KINDS = (
    *(
        "database",
        "disk",
        "held",
        "no_monitor",
        "could_not_start",
        "failing",
        "took_none",
        "not_started",
        "stuck",
        "spark_server",
        "watch",
        "bridge",
        "copy",
        "old",
    ),
    *("dead_letters", "put_aside", "bad_files", "not_archived", "nearly_full", "events_dropped", "disk_near", "paused"),
)
"""The most urgent first."""
URGENT = frozenset(KINDS[: KINDS.index("old")])
"""Something does not go on until a person acts."""


class Attention(msgspec.Struct, frozen=True):
    """One thing that needs attention: one of KINDS, and the name of its object.

    ``what`` is that object: queue, process, schedule, watch, bridge, copy, everything or server; blank where the name
    is. ``since_ms`` is 0 where it is not recorded. ``last_line`` is the last line of what a failed run wrote on its
    standard error, or the error of the newest dead letter.
    """

    kind: str
    name: str
    text: str
    remedy: str
    since_ms: int = 0
    last_line: str = ""
    what: str = "queue"


class Newest(msgspec.Struct, frozen=True):
    """When the newest message came to a queue of dead letters, and why."""

    at_ms: int
    error: str


class Waiting(msgspec.Struct, frozen=True):
    """What lies on queues: when the oldest message of each was put, and the newest dead letter of each.

    ``left_ms``: when a message last left each queue, since the queue manager's process started at ``since_ms``.
    """

    oldest_ms: dict[str, int] = {}
    newest: dict[str, Newest] = {}
    left_ms: dict[str, int] = {}
    since_ms: int = 0

    def seen(self, q_name: str) -> Seen:
        """Returns what is known of a queue's messages."""
        return Seen(self.oldest_ms.get(q_name, 0), self.left_ms.get(q_name, 0), self.since_ms)


def needs_attention(facts: WorldFacts, lies: Waiting) -> list[Attention]:
    """Returns the list, the most urgent kind first, by name within each kind."""
    waiting = [*_unread(facts, lies), *_waiting(facts, lies), *_aside(facts, lies)]
    others = [*_not_started(facts), *_nearly_full(facts), *_events_dropped(facts), *_paused(facts)]
    return ordered([*_held(facts), *waiting, *others])


def ordered(found: Iterable[Attention]) -> list[Attention]:
    """Returns findings, the most urgent kind first, by name within each kind."""
    return sorted(found, key=lambda each: (KINDS.index(each.kind), each.name))


def attention_of_process(manager: ManagerState, lies: Waiting, known: list[Attention]) -> Iterator[Attention]:
    """Yields what only the queue manager's process knows: the disk, and messages older than is usual."""
    disk = manager.disk
    if not manager.are_puts_allowed:
        text = "puts are refused: the disk is nearly full (2192)"
        yield Attention("disk", "", text, "make room: gets go on, and puts come back by themselves", what="")
    elif disk is not None and disk.free_bytes < 2 * disk.reserve_bytes:
        text = f"{size(disk.free_bytes)} are free on the disk; with {size(disk.reserve_bytes)} puts are refused"
        yield Attention("disk_near", "", text, "make room, or set a smaller store.disk_reserve", what="")
    if disk is not None and disk.not_archived:
        remedy = "make room in store.journal_archive if it is full, then a backup: no older one leads past this"
        yield Attention("not_archived", "", disk.not_archived, remedy, what="")
    for monitor, servers in manager.reports.lost_servers().items():
        for server in servers:
            text = f"the Spark Connect server of {monitor} ended {server.times} times: {server.why}"
            remedy = (
                "trigmon runs list --state held; the monitor's log has its errors, connect in the settings its memory"
            )
            yield Attention(
                "spark_server", server.master, text, remedy, server.since_ms, server.last_line, what="server"
            )
    explained = {each.name for each in known}
    for name, put_ms in lies.oldest_ms.items():
        activity = manager.activity.of(name, 0)
        age_ms, usual_ms = manager.now_ms - put_ms, max(0, activity.q_time_long_us) / 1000
        if name in explained or activity.gets < ENOUGH_GETS or age_ms < max(LONG_MS, TIMES_USUAL * usual_ms):
            continue
        text = f"its oldest message waits for {span(age_ms)}; messages usually wait for {span(usual_ms)}"
        yield Attention(
            "old", name, text, f"trigmon explain {name} --why-not; trigmon runs list --queue {name}", put_ms
        )


def database_waits(about: str) -> Attention:
    """Returns the finding where a member of a group answers nothing but that it waits for its database (2345)."""
    remedy = "make the database answer; the member goes on by itself"
    return Attention("database", "", f"no call is answered: {about}", remedy, what="")


def last_line(run: Run) -> str:
    """Returns the last line that a run wrote on its standard error, shortened."""
    lines = telling_lines(run.outcome.stderr_tail)
    return lines[-1][:LONGEST_LINE] if lines else ""


def _held(facts: WorldFacts) -> Iterator[Attention]:
    for pause in facts.pauses:
        if pause.is_breaker:
            last = facts.last_runs.get(pause.name, (NO_RUN,))[0]
            logs = f"trigmon runs logs --queue {pause.name}"
            look = f"trigmon process show {last.trigger.process_name}" if last.is_unstartable else logs
            remedy, line = f"{look}, then trigmon queue resume {pause.name}", last_line(last)
            yield Attention("held", pause.name, f"nothing is started: {pause.reason}", remedy, pause.since_ms, line)


def _paused(facts: WorldFacts) -> Iterator[Attention]:
    for pause in facts.pauses:
        if not pause.is_breaker:
            how = f"trigmon {pause.what} resume {pause.name}" if pause.name else "trigmon queue resume --all"
            yield Attention("paused", pause.name or pause.what, sentence(pause), how, pause.since_ms, what=pause.what)


def _unread(facts: WorldFacts, lies: Waiting) -> Iterator[Attention]:
    for name, count in unread_initiation_queues(facts).items():
        waits = f"; {_wait(count, 'trigger message')} there" if count else ""
        since_ms = lies.oldest_ms.get(name, 0)
        yield Attention("no_monitor", name, f"no monitor reads it{waits}", f"trigmon monitor --initq {name}", since_ms)


def unread_initiation_queues(facts: WorldFacts) -> dict[str, int]:
    """Returns the initiation queues that no monitor reads, of triggering queues and of schedules, with their depths."""
    there = {queue.definition.name: queue for queue in facts.world.queues}
    scheduled = {s.q_name for s in facts.world.schedules}
    triggering = [q for q in facts.world.queues if _triggers(q) or q.definition.name in scheduled]
    named = {q.definition.initiation_q_name for q in triggering}
    named |= {s.initiation_q_name for s in facts.world.schedules if s.process_name}
    return {name: there[name].depth for name in sorted(named) if name in there and not there[name].readers}


def _waiting(facts: WorldFacts, lies: Waiting) -> Iterator[Attention]:
    """Yields queues with messages that count, which nobody reads and for which nothing runs, is due or waits."""
    there = {queue.definition.name: queue for queue in facts.world.queues}
    busy = {serving.q_name for serving in facts.serves} | facts.world.held_queues
    causes = {cause.q_name: cause for cause in facts.causes if cause.failed or cause.fruitless}
    for queue in facts.world.queues:
        definition = queue.definition
        name, initiation = definition.name, there.get(definition.initiation_q_name)
        if not counting(queue) or queue.readers or name in busy or pauses_of(facts, name, definition.process_name):
            continue
        if initiation is None or not initiation.readers or initiation.depth:
            continue  # that is the finding, or its trigger message is on its way
        waits = f"{_wait(counting(queue), 'message')}, and nobody reads"
        explain = f"trigmon explain {name} --why-not"
        start = f"trigmon process start {definition.process_name} --queue {name}"
        cause, idle = causes.get(name), facts.idle_runs.get(name)
        if idle is not None and (cause is None or not cause.failed) and left_all(idle, lies.seen(name)):
            text, remedy = f"{waits}: {how_it_ended(idle)}", f"trigmon explain {name}; {start}"
            yield Attention("took_none", name, text, remedy, idle.outcome.end_ms, last_line(idle))
        elif cause is not None:
            yield _failing(name, waits, cause, facts.last_runs.get(name, (NO_RUN,)), start)
        else:
            text = f"{waits}; nothing is to be started for them"
            yield Attention("stuck", name, text, f"{explain}; {start}", lies.oldest_ms.get(name, 0))


def _not_started(facts: WorldFacts) -> Iterator[Attention]:
    """Yields schedules that started nothing at their last moment, since a condition did not hold, or that have none."""
    for schedule in facts.world.schedules:
        if wrong := fault("", schedule.timezone):  # a machine with another database of zones, or another member
            text, remedy = f"no moment comes: {wrong}", f"trigmon schedule alter {schedule.name} timezone=UTC"
            yield Attention("not_started", schedule.name, text, remedy, schedule.timed_ms, what="schedule")
        elif is_lost(schedule):
            about = f"trigmon explain {schedule.q_name} --why-not" if schedule.q_name else ""
            remedy = "; ".join(filter(None, (about, f"trigmon schedule run {schedule.name}")))
            text = f"nothing was started: {schedule.why_not}"
            yield Attention("not_started", schedule.name, text, remedy, schedule.last_moment_ms, what="schedule")


def _failing(name: str, waits: str, cause: Cause, runs: tuple[Run, ...], start: str) -> Attention:
    """Returns the finding about a row of runs, the newest first: it goes on since the first of them ended."""
    last, first = runs[0], runs[-1]
    since_ms = first.outcome.end_ms or first.origin.recorded_ms
    if last.is_unstartable:
        remedy = f"trigmon process show {last.trigger.process_name}, then {start}"
        return Attention("could_not_start", name, f"{waits}: could not start: {last.why}", remedy, since_ms)
    line = last_line(last)
    why = f": {last.why}" if last.why else ""
    return Attention(
        "failing", name, f"{waits}: {_failed(cause)}{why}", f"trigmon runs logs --queue {name}; {start}", since_ms, line
    )


def _failed(cause: Cause) -> str:
    if cause.failed:
        return "the last run failed" if cause.failed == 1 else f"the last {cause.failed} runs failed"
    runs = "run" if cause.fruitless == 1 else f"{cause.fruitless} runs"
    return f"the last {runs} removed no message"


def aside_queues(facts: WorldFacts) -> dict[str, str]:
    """Returns the dead-letter queue and the backout queues that hold messages, each with its kind."""
    dead = facts.q_mgr.dead_letter_q_name
    backout = {queue.definition.backout_requeue_q_name for queue in facts.world.queues} - {"", dead}
    kinds = {dead: "dead_letters"} | dict.fromkeys(backout, "put_aside")
    filled = (queue.definition.name for queue in facts.world.queues if queue.depth)
    return {name: kinds[name] for name in filled if name in kinds}


def _aside(facts: WorldFacts, lies: Waiting) -> Iterator[Attention]:
    depths = {queue.definition.name: queue.depth for queue in facts.world.queues}
    for name, kind in aside_queues(facts).items():
        newest = lies.newest.get(name, Newest(0, ""))
        why = f"; the newest: {newest.error}" if newest.error else ""
        if kind == "dead_letters":
            text, remedy = counted(depths[name], "dead letter"), "trigmon dlq list"
        else:
            text, remedy = f"{counted(depths[name], 'message')} put aside", f"trigmon dlq list --queue {name}"
        line = newest.error[:LONGEST_LINE]
        yield Attention(kind, name, f"{text}{why}", remedy, newest.at_ms, line)


def _nearly_full(facts: WorldFacts) -> Iterator[Attention]:
    for queue in facts.world.queues:
        most, name = queue.definition.max_q_depth, queue.definition.name
        if most and queue.lying >= NEARLY_FULL * most:
            text = f"{queue.lying} of at most {most} messages (MAXDEPTH)"
            yield Attention("nearly_full", name, text, f"trigmon queue alter {name} MAXDEPTH=NUMBER")


def _events_dropped(facts: WorldFacts) -> Iterator[Attention]:
    """Yields the event queues that take no event, whichever; one that is full is nearly full."""
    are_put = {EVENT_QUEUE: facts.q_mgr.trigmon_event, PERFORMANCE_EVENT_QUEUE: facts.q_mgr.performance_event}
    there = {queue.definition.name: queue for queue in facts.world.queues}
    remotes = {remote.name for remote in facts.world.remotes}
    for name in (name for name, is_put in are_put.items() if is_put and name not in remotes):
        queue = there.get(name)
        if queue is None:
            why, remedy = "there is no local queue of this name", f"trigmon queue define {name} DEFPSIST=YES"
        elif queue.shared is not None:
            why, remedy = "the queue is shared", f"delete it, then trigmon queue define {name} DEFPSIST=YES"
        elif queue.definition.inhibit_put is Inhibit.INHIBITED:
            why, remedy = "puts are inhibited", f"trigmon queue alter {name} PUT=ENABLED"
        else:
            continue
        yield Attention("events_dropped", name, f"events are dropped: {why}", remedy)


def _triggers(queue: QueueFacts) -> bool:
    definition = queue.definition
    is_meant = definition.trigger_type is not TriggerType.NONE and bool(definition.process_name)
    return is_meant and definition.trigger_control is TriggerControl.ON and not queue.is_deleted


def counting(queue: QueueFacts) -> int:
    """Returns how many waiting messages should have started something: 0 where the queue is not to trigger for them.

    A DEPTH queue turns trigger control off when it has triggered: then nothing starts for what is left.
    """
    definition = queue.definition
    waiting = queue.waiting(definition.trigger_msg_priority) - queue.unseen
    if definition.trigger_type is TriggerType.DEPTH:
        is_over = waiting >= definition.trigger_depth and bool(definition.process_name) and not queue.is_deleted
        return waiting if is_over else 0
    return max(0, waiting) if _triggers(queue) else 0


def _wait(number: int, noun: str) -> str:
    return f"{counted(number, noun)} {'waits' if number == 1 else 'wait'}"

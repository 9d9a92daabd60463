"""Sentences for people, made from what the conditions saw: fact, seen, needed, remedy, in the seed's order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from trigmon.mq.enums import TriggerType, word
from trigmon.mq.explanation import Explanation, moment
from trigmon.rules.model.situation import Happened, Situation
from trigmon.rules.model.verdict import Finding, Verdict
from trigmon.rules.triggers.conditions import condition_13c_monitor_opened
from trigmon.rules.triggers.extensions import backstop_passed, oldest_has_waited

ORDER = ("1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "13a", "13b", "13c", "14")

FACTS = {
    "1": "a message is put on the queue",
    "2": "its priority reaches TRIGMPRI",
    "3": "the number of such messages before it suits the trigger type",
    "4": "no program has the queue open for input",
    "5": "gets from the queue are allowed",
    "6": "the process is named and defined",
    "7": "the initiation queue exists and takes puts and gets",
    "8": "a trigger monitor has the initiation queue open for input",
    "9": "trigger control is on",
    "10": "the trigger type is not NONE",
    "11": "others waited already, and the interval or the depth allows another trigger",
    "12": "the last reader closed the queue and enough messages wait",
    "13": "the trigger criteria changed and enough messages wait",
    "13a": "puts became allowed on the initiation queue and enough messages wait",
    "13b": "gets became allowed on the queue and enough messages wait",
    "13c": "the first monitor opened the initiation queue and enough messages wait",
    "14": "messages count at a priority that can reach TRIGMPRI",
}
OUR_FACTS = {
    "B": "messages wait, and BACKSTOP has passed since the last trigger message",
    "M": "the oldest qualifying message has waited MAXWAIT",
    "R": "a reservation lost its last connection and enough messages wait",
    "S": "a moment of a schedule has come, and with ONLYIF(MESSAGES) a message waits",
}


def explanations(situation: Situation, verdict: Verdict) -> list[Explanation]:
    """Returns every condition of a verdict for a person, in the seed's order.

    Of 1 and 11 the one that does not concern this put is shown as not applying: a put fires by one of them.
    """
    ordered = sorted(verdict.findings, key=lambda finding: (*ORDER, *OUR_FACTS).index(finding.number))
    eleven = any(f.number == "11" and f.holds for f in ordered)
    shown = []
    for finding in ordered:
        seen, needed, remedy = _WORDS[finding.number](situation, finding)
        spared = finding.number == "3" and not finding.holds and eleven
        unasked = finding.number == "11" and not finding.holds and _third_holds(ordered)
        if not finding.applies or spared or unasked:
            holds, remedy = "does not apply", ""
        else:
            holds, remedy = ("yes", "") if finding.holds else ("NO", remedy)
        shown.append(
            Explanation(
                number=finding.number,
                fact=FACTS.get(finding.number) or OUR_FACTS[finding.number],
                holds=holds,
                seen=seen,
                needed=needed,
                remedy=remedy,
            )
        )
    return shown


def _third_holds(findings: list[Finding]) -> bool:
    return any(f.number == "3" and f.holds for f in findings)


Words = tuple[str, str, str]
_A_MINUTE = 60_000  # a TRIGINT that spares the programs and tries again soon, in ms


def _alter(s: Situation) -> str:
    if s.schedule is not None and not s.queue.definition.name:
        return f"ALTER SCHEDULE({s.schedule.name})"
    return f"ALTER QLOCAL({s.queue.definition.name})"


def _start_now(s: Situation) -> str:
    """Returns the command that serves messages which no put will trigger for, where there is a process to start."""
    if s.process is None:
        return ""
    return f"trigmon process start {s.process.name} --queue {s.queue.definition.name}, "


def _happened(s: Situation, f: Finding) -> Words:
    return s.happened.value, "", ""


def _priority(s: Situation, f: Finding) -> Words:
    remedy = f"put with a priority of {f.wanted} or more, or {_alter(s)} TRIGMPRI({f.saw})"
    return f"counted priority {f.saw}", f"at least {f.wanted}", remedy


def _before(s: Situation, f: Finding) -> Words:
    priority = s.queue.definition.trigger_msg_priority
    seen = f"{f.saw} waiting with priority {priority} or more"
    if s.arriving > 1:
        seen += f", this put brings {s.arriving}"
    if s.queue.definition.trigger_type is TriggerType.DEPTH:
        remedy = f"put more messages, or {_alter(s)} TRIGDPTH({s.queue.waiting(priority) + 1})"
        least = max(0, s.queue.definition.trigger_depth - s.arriving)
        return seen, f"exactly {f.wanted}" if s.arriving == 1 else f"{least} to {f.wanted}", remedy
    if s.queue.definition.trigger_type is TriggerType.FIRST:
        return seen, "none", f"{_start_now(s)}drain the queue, or wait until TRIGINT has passed (condition 11)"
    return seen, "any number", ""


def _readers(s: Situation, f: Finding) -> Words:
    name = s.queue.definition.name
    remedy = f"end the programs that read it: DISPLAY QSTATUS({name}) TYPE(HANDLE)"
    if s.silenced_by:
        ends = f"{remedy} on {s.silenced_by}"
        return f"open exclusively through {s.silenced_by}", "no member of the group has it open exclusively", ends
    where = " on this queue manager" if s.queue.shared is not None and s.queue.shared.readers else ""
    return f"IPPROCS({f.saw}){where}", "IPPROCS(0) for FIRST and DEPTH", remedy


def _get(s: Situation, f: Finding) -> Words:
    return f"gets {_plain(f.saw)}", "gets allowed", f"{_alter(s)} GET(ENABLED)"


def _process(s: Situation, f: Finding) -> Words:
    if not f.saw:
        remedy = f"{_alter(s)} PROCESS(NAME), of those that DISPLAY PROCESS(*) shows"
        return "PROCESS is blank", "a process, but for a transmission queue", remedy
    state = "is defined" if f.holds else "is not defined"
    return f"PROCESS({f.saw}) {state}", "a defined process", f"DEFINE PROCESS({f.saw}) APPLICID('/path/to/program')"


def _initiation(s: Situation, f: Finding) -> Words:
    if f.saw is None:
        if not f.wanted:
            return "INITQ is blank", "a local queue", f"{_alter(s)} INITQ(SYSTEM.DEFAULT.INITIATION.QUEUE)"
        return f"INITQ({f.wanted}) is no local queue", "a local queue", f"DEFINE QLOCAL({f.wanted})"
    saw = f.saw if isinstance(f.saw, tuple) else ("", "", "")
    if len(saw) > 3:
        return (
            f"{f.wanted} was deleted, and is still in use",
            "a queue that is not deleted",
            "open the model queue again",
        )
    get, put, usage = saw
    seen = f"{f.wanted}: gets {_plain(get)}, puts {_plain(put)}, usage {_plain(usage)}"
    remedy = f"ALTER QLOCAL({f.wanted}) GET(ENABLED) PUT(ENABLED) USAGE(NORMAL)"
    return seen, "gets allowed, puts allowed, usage normal", remedy


def _monitor(s: Situation, f: Finding) -> Words:
    name = s.queue.definition.initiation_q_name or "the initiation queue"
    return f"{name} has IPPROCS({f.saw})", "at least 1", f"start a monitor: trigmon monitor --initq {name}"


def _control(s: Situation, f: Finding) -> Words:
    again = " (DEPTH switches it off when it fires)" if s.queue.definition.trigger_type is TriggerType.DEPTH else ""
    remedy = f"{_alter(s)} TRIGGER"
    if s.queue.definition.is_disarmed:
        depth = s.queue.definition.trigger_depth
        remedy += f"; by itself (REARM(AUTO)) when fewer than {depth} wait and nobody reads the queue"
    return f"trigger control {_plain(f.saw)}", f"on{again}", remedy


def _type(s: Situation, f: Finding) -> Words:
    seen = f"TRIGTYPE({_plain(f.saw).upper()})"
    if readers := _read_elsewhere(s):
        seen += f" and TRIGMPRI(0), whatever it is defined with, while {readers} reads it (condition 4, note a)"
    return seen, "FIRST, EVERY or DEPTH", f"{_alter(s)} TRIGTYPE(FIRST)"


def _read_elsewhere(s: Situation) -> str:
    """Returns the other members for whose sake a shared queue is judged as FIRST from priority 0."""
    if s.queue.shared is None or s.silenced_by or s.queue.definition.trigger_type is TriggerType.NONE:
        return ""
    return " and ".join(reader.q_mgr_name for reader in s.queue.shared.readers)


def _eleven(s: Situation, f: Finding) -> Words:
    before, passed = f.saw if isinstance(f.saw, tuple) else (f.saw, None)
    if s.queue.definition.trigger_type is TriggerType.DEPTH:
        return f"{before} waiting", f"TRIGDPTH({s.queue.definition.trigger_depth}) or more", "put more messages"
    since = "no trigger message since the start" if passed is None else f"{passed} ms since the last trigger message"
    shorter = min(_A_MINUTE, s.trigger_interval_ms // 2)
    remedy = f"{_start_now(s)}wait for TRIGINT, drain the queue, or ALTER QMGR TRIGINT({shorter})"
    return f"{before} waiting, {since}", f"at least 1 waiting and {s.trigger_interval_ms} ms passed", remedy


def _waiting(s: Situation, f: Finding) -> Words:
    saw = f.saw[-1] if isinstance(f.saw, tuple) else f.saw
    wanted = f.wanted[-1] if isinstance(f.wanted, tuple) else f.wanted
    return f"{saw} waiting", f"at least {wanted}", "put more messages, or drain those that wait"


def _monitor_came(s: Situation, f: Finding) -> Words:
    seen, needed, remedy = _waiting(s, f)
    if s.recovers_all:
        seen += (
            f", {s.under_way} with a trigger message or run already: RECOVER(ALL) has {s.due} trigger messages written"
        )
    return seen, needed, remedy


def _closing(s: Situation, f: Finding) -> Words:
    readers, waiting = f.saw if isinstance(f.saw, tuple) else (0, f.saw)
    if s.queue.definition.trigger_type not in (TriggerType.FIRST, TriggerType.DEPTH):
        return f"TRIGTYPE({_plain(s.queue.definition.trigger_type).upper()})", "FIRST or DEPTH", ""
    wanted = f.wanted[-1] if isinstance(f.wanted, tuple) else f.wanted
    remedy = "end the other programs that read it" if readers else ""
    return f"IPPROCS({readers}) after the close, {waiting} waiting", f"IPPROCS(0), at least {wanted} waiting", remedy


def _changed(s: Situation, f: Finding) -> Words:
    changed, waiting = f.saw if isinstance(f.saw, tuple) else ((), f.saw)
    seen = f"{' '.join(changed) or 'nothing that counts'} changed, {waiting} waiting"
    return seen, f"control on, at least {f.wanted} waiting", f"put more messages, or {_alter(s)} TRIGGER"


def _counting(s: Situation, f: Finding) -> Words:
    if not f.applies:
        return f"by its own priority, {f.saw}", "", ""
    return (
        f"FIFO: every message counts at DEFPRTY({f.saw})",
        f"DEFPRTY at least TRIGMPRI({f.wanted})",
        f"{_alter(s)} DEFPRTY({f.wanted}), or TRIGMPRI({f.saw}), or MSGDLVSQ(PRIORITY)",
    )


def what_time_will_bring(situation: Situation) -> list[Explanation]:
    """Returns the rows B and M of a queue that has them, and how long each will take; 13c for RECOVER(ALL)."""
    definition = situation.queue.definition
    rows = []
    if definition.backstop_s and definition.trigger_type is TriggerType.FIRST:
        rows.append(backstop_passed(replace(situation, happened=Happened.BACKSTOP)))
    if definition.max_wait_s:
        rows.append(oldest_has_waited(replace(situation, happened=Happened.MAX_WAIT)))
    came = replace(situation, happened=Happened.MONITOR_OPENED)
    if came.recovers_all:
        rows.append(condition_13c_monitor_opened(came))
    shown = []
    for finding in rows:
        seen, needed, _ = _WORDS[finding.number](came, finding)
        holds = "yes" if finding.holds else "not yet"
        fact = OUR_FACTS.get(finding.number) or FACTS[finding.number]
        shown.append(Explanation(number=finding.number, fact=fact, holds=holds, seen=seen, needed=needed))
    return shown


def _backstop(s: Situation, f: Finding) -> Words:
    waiting, passed = f.saw if isinstance(f.saw, tuple) else (0, None)
    since = "no trigger message since the start" if passed is None else f"{_seconds(passed)} since the last one"
    return f"{waiting} waiting, {since}", _remaining(s.queue.definition.backstop_s, passed if waiting else None), ""


def _max_wait(s: Situation, f: Finding) -> Words:
    if not isinstance(f.saw, int):
        return "no qualifying message waits", _remaining(s.queue.definition.max_wait_s, None), ""
    return f"waited {_seconds(f.saw)}", _remaining(s.queue.definition.max_wait_s, f.saw), ""


def _moment(s: Situation, f: Finding) -> Words:
    name = s.schedule.name if s.schedule is not None else ""
    seen = f"{moment(s.moment_ms)} of SCHEDULE({name}), {f.saw} waiting"
    return seen, f"at least {f.wanted} waiting" if f.wanted else "", f"ALTER SCHEDULE({name}) ONLYIF(NONE)"


def _seconds(ms: int) -> str:
    return f"{ms / 1000:.1f} s"


def _remaining(wanted_s: int, passed_ms: int | None) -> str:
    left = (
        "" if passed_ms is None or passed_ms >= wanted_s * 1000 else f"; {_seconds(wanted_s * 1000 - passed_ms)} remain"
    )
    return f"{wanted_s} s{left}"


def _plain(value: Any) -> str:
    return word(value) if hasattr(value, "name") else str(value)


_WORDS: dict[str, Callable[[Situation, Finding], Words]] = {
    "1": _happened,
    "2": _priority,
    "3": _before,
    "4": _readers,
    "5": _get,
    "6": _process,
    "7": _initiation,
    "8": _monitor,
    "9": _control,
    "10": _type,
    "11": _eleven,
    "12": _closing,
    "13": _changed,
    "13a": _waiting,
    "13b": _waiting,
    "13c": _monitor_came,
    "14": _counting,
    "B": _backstop,
    "M": _max_wait,
    "R": _waiting,
    "S": _moment,
}

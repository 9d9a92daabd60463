"""Lint rules: what is likely wrong in definitions that are all valid, one small function a rule, in one table.

Pure: definitions in, findings out. LINT.md beside this file is the manual, a section a rule in the table's order; a
test holds the two and the tests equal. Each remedy is MQSC that can be pasted, and ends its finding; where only the
user knows the program, it names PROGRAM.
"""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from trigmon.mq.attributes import (
    ATTRIBUTES,
    BILLION,
    KINDS,
    QUEUE_KINDS,
    AliasQueue,
    LocalQueue,
    Process,
    QueueManagerDefinition,
    Schedule,
    Watch,
)
from trigmon.mq.descriptors import TM_LENGTH
from trigmon.mq.enums import (
    ApplType,
    BackoutRequeue,
    MsgDeliverySequence,
    ObjectType,
    Persistence,
    Rearm,
    TriggerControl,
    TriggerType,
    Usage,
)
from trigmon.mq.event_kinds import EVENT_QUEUES
from trigmon.mq.explanation import moment
from trigmon.rules.objects.define import DEFAULT_OBJECTS
from trigmon.rules.objects.file_patterns import overlap
from trigmon.rules.remedies import quoted_name as _q
from trigmon.rules.remedies import quoted_text as _text
from trigmon.rules.remedies import related as _related
from trigmon.rules.runs import spark_ports
from trigmon.rules.runs.check_program import path_words
from trigmon.rules.runs.shell_text import for_a_shell, needs_shell
from trigmon.schedules.moments import common_moment, skipped

WATCH_HINDERED = "watch-hindered"
"""What no definition shows: a directory or a queue that hinders a watch, as the process reports that serves it."""
NOT_LOADED = "not-loaded"
"""What lies before every definition: a command or an item of a file that is wrong, or that a queue manager refuses."""
_BORN_WITH = "SYSTEM.DEFAULT.INITIATION.QUEUE"
_INITIATION_Q_LENGTH = 1000
_DEAD_LETTER_Q = "SYSTEM.DEAD.LETTER.QUEUE"
_INTERVAL_MS = 60_000
_THRESHOLD = 3
_INSTANCES = 4


class Finding(msgspec.Struct, frozen=True):
    """What a rule found on one object: what is there, what may come of it, and the MQSC that ends it."""

    rule: str
    object_type: str
    name: str
    found: str
    risk: str
    remedy: str


class Found(msgspec.Struct, frozen=True):
    """What a rule's function yields; the table adds the rule's name and its risk."""

    object_type: ObjectType
    name: str
    found: str
    remedy: str


class Definitions(msgspec.Struct, frozen=True):
    """All objects of a queue manager, by name. ``queue_names`` are those of all kinds of queue."""

    q_mgr: QueueManagerDefinition
    queues: dict[str, LocalQueue]
    aliases: dict[str, AliasQueue]
    processes: dict[str, Process]
    schedules: dict[str, Schedule]
    models: frozenset[str]
    queue_names: frozenset[str]
    watches: dict[str, Watch]

    def triggered(self) -> Iterator[LocalQueue]:
        """Yields the queues that are to start programs.

        DEPTH switches its own control off, and is meant all the same.
        """
        for queue in self.queues.values():
            is_on = queue.trigger_control is TriggerControl.ON and queue.trigger_type is not TriggerType.NONE
            fired = queue.trigger_type is TriggerType.DEPTH and queue.process_name and queue.initiation_q_name
            if is_on or fired:
                yield queue


def definitions(rows: Iterable[Mapping[str, Any]]) -> Definitions:
    """Returns the objects of these rows of DISPLAY. Attributes that are not known here are left out."""
    found: dict[ObjectType, dict[str, Any]] = {which: {} for which in KINDS}
    names = set()
    for row in rows:
        which = ObjectType.__members__.get(str(row["object_type"]))
        if which is None or which not in KINDS:
            continue
        table = ATTRIBUTES[which]
        values = {name: table[name].read(value, row["name"]) for name, value in row.items() if name in table}
        found[which][row["name"]] = KINDS[which](name=row["name"], **values)
        if which in QUEUE_KINDS:
            names.add(row["name"])
    q_mgr = next(iter(found[ObjectType.QMGR].values()), QueueManagerDefinition(name=""))
    local, aliases, processes = (found[which] for which in (ObjectType.QLOCAL, ObjectType.QALIAS, ObjectType.PROCESS))
    schedules, watches = found[ObjectType.SCHEDULE], found[ObjectType.WATCH]
    models = frozenset(found[ObjectType.QMODEL])
    return Definitions(q_mgr, local, aliases, processes, schedules, models, frozenset(names), watches)


def lint(given: Definitions) -> list[Finding]:
    """Returns everything that the rules find, in the table's order and by name within a rule."""
    return [
        Finding(name_of(rule), found.object_type.name, found.name, found.found, risk, found.remedy)
        for rule, risk in RULES.items()
        for found in sorted(rule(given), key=lambda found: found.name)
    ]


def reported(rows: Iterable[Mapping[str, Any]]) -> list[Finding]:
    """Returns what hinders watches: in the rows of DISPLAY of a queue manager that runs."""
    risk = "Its files do not become messages, or some of them do not."
    return [
        Finding(WATCH_HINDERED, "WATCH", row["name"], row["problem"], risk, f"DISPLAY WATCH({_q(row['name'])}) ALL")
        for row in rows
        if row.get("problem")
    ]


def not_loaded(object_type: str, name: str, found: str) -> Finding:
    """Returns the finding about a command or an item of a file; ``found`` says what is wrong with it."""
    risk = "It does nothing where the file is loaded; all else is looked at as if it were not there."
    return Finding(NOT_LOADED, object_type, name, found, risk, "mend it where it stands")


def name_of(rule: Rule) -> str:
    """Returns a rule's name, as it is shown and as it is given to ``--ignore``."""
    return rule.__name__.replace("_", "-")


Rule = Callable[[Definitions], Iterator[Found]]


def trigger_without_process(given: Definitions) -> Iterator[Found]:
    """Yields queues with TRIGGER and a blank or missing PROCESS; a transmission queue may do without a name."""
    for queue in given.triggered():
        name, process = queue.name, queue.process_name
        if process in given.processes or (not process and queue.usage is Usage.TRANSMISSION):
            continue
        define = _define_process(given, process or name)
        alter = "" if process else f"ALTER QLOCAL({_q(name)}) PROCESS({_q(name)})"
        found = f"PROCESS({process}) is not defined" if process else "PROCESS is blank"
        yield _of_queue(queue, found, define, alter)


def trigger_without_initiation_queue(given: Definitions) -> Iterator[Found]:
    """Yields queues with TRIGGER and an INITQ that is blank, missing, not local or a transmission queue."""
    for queue in given.triggered():
        name = queue.initiation_q_name
        initiation = given.queues.get(name)
        if initiation is None:
            if name and name not in given.queue_names:
                remedy = f"DEFINE QLOCAL({_q(name)}) MAXMSGL({_INITIATION_Q_LENGTH})"
            else:
                remedy = f"ALTER QLOCAL({_q(queue.name)}) INITQ({_BORN_WITH})"
            yield _of_queue(queue, f"INITQ({name}) is no local queue" if name else "INITQ is blank", remedy)
        elif initiation.usage is not Usage.NORMAL:
            yield _of_queue(queue, f"INITQ({name}) has USAGE(XMITQ)", f"ALTER QLOCAL({_q(name)}) USAGE(NORMAL)")


def priority_never_reached(given: Definitions) -> Iterator[Found]:
    """Yields FIFO queues with TRIGMPRI above DEFPRTY, at which every message counts (condition 14)."""
    for queue in given.triggered():
        wanted, counted = queue.trigger_msg_priority, queue.def_priority
        if queue.msg_delivery_sequence is MsgDeliverySequence.FIFO and wanted > counted:
            found = f"MSGDLVSQ(FIFO) DEFPRTY({counted}) TRIGMPRI({wanted})"
            yield _of_queue(queue, found, f"ALTER QLOCAL({_q(queue.name)}) TRIGMPRI({counted})")


def first_without_interval(given: Definitions) -> Iterator[Found]:
    """Yields TRIGINT at its default (999 999 999 ms) with FIRST queues that lack BACKSTOP and MAXWAIT."""
    watched = [queue for queue in given.triggered() if not queue.backstop_s and not queue.max_wait_s]
    first = sorted(queue.name for queue in watched if queue.trigger_type is TriggerType.FIRST)
    if first and given.q_mgr.trigger_interval == BILLION:
        more = f" and {len(first) - 3} more" if len(first) > 3 else ""
        found = f"TRIGINT({BILLION}), and TRIGTYPE(FIRST) on {', '.join(first[:3])}{more}"
        yield Found(ObjectType.QMGR, given.q_mgr.name, found, f"ALTER QMGR TRIGINT({_INTERVAL_MS})")


def every_without_cap(given: Definitions) -> Iterator[Found]:
    """Yields a process without INSTANCES that a queue of type EVERY starts."""
    starts: dict[str, str] = {}
    for queue in given.triggered():
        if queue.trigger_type is TriggerType.EVERY:
            starts.setdefault(queue.process_name, queue.name)
    for name, q_name in starts.items():
        process = given.processes.get(name)
        if process is not None and not process.instances:
            found = f"INSTANCES(0), and TRIGTYPE(EVERY) on {q_name}"
            yield Found(ObjectType.PROCESS, name, found, f"ALTER PROCESS({_q(name)}) INSTANCES({_INSTANCES})")


def depth_without_rearming(given: Definitions) -> Iterator[Found]:
    """Yields queues of TRIGTYPE(DEPTH), which switches control off, without REARM(AUTO), which turns it on."""
    for queue in given.triggered():
        if queue.trigger_type is TriggerType.DEPTH and queue.rearm is Rearm.MQ:
            found = f"TRIGTYPE(DEPTH) TRIGDPTH({queue.trigger_depth}) REARM(MQ)"
            # Of a queue that has fired already only TRIGGER says that it is meant to fire again.
            yield _of_queue(queue, found, f"ALTER QLOCAL({_q(queue.name)}) REARM(AUTO) TRIGGER")


def extension_without_effect(given: Definitions) -> Iterator[Found]:
    """Yields REARM(AUTO) on a queue that is not of type DEPTH, BACKSTOP on one that is not of type FIRST."""
    for queue in given.triggered():
        idle = {
            "REARM(AUTO)": ("REARM(MQ)", queue.rearm is Rearm.AUTO and queue.trigger_type is not TriggerType.DEPTH),
            f"BACKSTOP({queue.backstop_s})": (
                "BACKSTOP(0)",
                queue.backstop_s > 0 and queue.trigger_type is not TriggerType.FIRST,
            ),
        }
        words = [word for word, (_, is_idle) in idle.items() if is_idle]
        if words:
            without = " ".join(idle[word][0] for word in words)
            found = f"TRIGTYPE({queue.trigger_type.name}) {' '.join(words)}"
            yield _of_queue(queue, found, f"ALTER QLOCAL({_q(queue.name)}) {without}")


def initiation_queue_too_small(given: Definitions) -> Iterator[Found]:
    """Yields a queue named as INITQ whose MAXMSGL is under the 684 bytes of a trigger message."""
    for name in {queue.initiation_q_name for queue in given.queues.values()}:
        initiation = given.queues.get(name)
        if initiation is not None and initiation.max_msg_length < TM_LENGTH:
            found = f"MAXMSGL({initiation.max_msg_length})"
            yield _of_queue(initiation, found, f"ALTER QLOCAL({_q(name)}) MAXMSGL({_INITIATION_Q_LENGTH})")


def triggered_work_not_persistent(given: Definitions) -> Iterator[Found]:
    """Yields queues with DEFPSIST(NO) that start programs."""
    for queue in given.triggered():
        if queue.def_persistence is Persistence.NOT_PERSISTENT:
            yield _of_queue(queue, "DEFPSIST(NO)", f"ALTER QLOCAL({_q(queue.name)}) DEFPSIST(YES)")


def no_dead_letter_queue(given: Definitions) -> Iterator[Found]:
    """Yields a queue manager that triggers and whose DEADQ is blank, or names no local queue."""
    name = given.q_mgr.dead_letter_q_name
    if name in given.queues or not any(given.triggered()):
        return
    if name and name not in given.queue_names:
        remedy = f"DEFINE QLOCAL({_q(name)}) MAXDEPTH({BILLION})"
    else:
        remedy = f"ALTER QMGR DEADQ({_DEAD_LETTER_Q})"
    found = f"DEADQ({name}) is no local queue" if name else "DEADQ is blank"
    yield Found(ObjectType.QMGR, given.q_mgr.name, found, remedy)


def no_backout_threshold(given: Definitions) -> Iterator[Found]:
    """Yields queues that start programs with BOTHRESH(0), or a threshold without a queue to put aside to.

    With BOREQ(QMGR) the two rules behind this one look at it. An event that could not be sent is no bad message: its
    queue needs no threshold.
    """
    for queue in given.triggered():
        if queue.backout_requeue is BackoutRequeue.QMGR or queue.name in EVENT_QUEUES:
            continue
        aside = queue.backout_requeue_q_name
        if queue.backout_threshold and aside in given.queue_names:
            continue
        found = f"BOTHRESH({queue.backout_threshold})"
        if queue.backout_threshold:
            found += f" and BOQNAME({aside}) is no queue" if aside else " and BOQNAME is blank"
        target = aside or _failed_queue(queue.name)
        define = "" if target in given.queue_names else f"DEFINE QLOCAL({_q(target)}) DEFPSIST(YES)"
        threshold = queue.backout_threshold or _THRESHOLD
        # trigmon.spark.drain keeps to the threshold by itself; a program that knows nothing of it does not.
        process = given.processes.get(queue.process_name)
        by = "" if process is not None and process.appl_type == ApplType.SPARK else " BOREQ(QMGR)"
        alter = f"ALTER QLOCAL({_q(queue.name)}) BOTHRESH({threshold}){by} BOQNAME({_q(target)})"
        yield _of_queue(queue, found, define, alter)


def backout_requeue_without_threshold(given: Definitions) -> Iterator[Found]:
    """Yields queues with BOREQ(QMGR) and BOTHRESH(0), which is no threshold."""
    for queue in given.queues.values():
        if queue.backout_requeue is BackoutRequeue.QMGR and not queue.backout_threshold:
            yield _of_queue(queue, "BOREQ(QMGR) BOTHRESH(0)", f"ALTER QLOCAL({_q(queue.name)}) BOTHRESH({_THRESHOLD})")


def backout_requeue_to_nothing(given: Definitions) -> Iterator[Found]:
    """Yields queues with BOREQ(QMGR) where no queue can take what is put aside, or BOQNAME's cannot."""
    dead = given.q_mgr.dead_letter_q_name
    for queue in given.queues.values():
        if queue.backout_requeue is not BackoutRequeue.QMGR or not queue.backout_threshold:
            continue
        aside = queue.backout_requeue_q_name
        alias = given.aliases.get(aside)
        if not aside:
            if dead in given.queues and dead != queue.name:
                continue
            found = f"BOQNAME is blank and DEADQ({dead}) is no other queue" if dead else "BOQNAME and DEADQ are blank"
        elif aside == queue.name or (alias is not None and alias.base_q_name == queue.name):
            found = f"BOQNAME({aside}) is the queue itself"
        elif aside not in given.queue_names:
            found = f"BOQNAME({aside}) is not defined"
        elif aside in given.models:
            found = f"BOQNAME({aside}) is a model"
        else:
            continue
        target = aside if aside and aside not in given.queue_names else _failed_queue(queue.name)
        define = "" if target in given.queue_names else f"DEFINE QLOCAL({_q(target)}) DEFPSIST(YES)"
        alter = "" if target == aside else f"ALTER QLOCAL({_q(queue.name)}) BOQNAME({_q(target)})"
        yield _of_queue(queue, found, define, alter)


def every_by_private_initiation_queues(given: Definitions) -> Iterator[Found]:
    """Yields a shared queue of type EVERY whose INITQ each member has for itself."""
    for queue in given.triggered():
        initiation = given.queues.get(queue.initiation_q_name)
        if queue.is_shared and queue.trigger_type is TriggerType.EVERY and initiation is not None:
            if initiation.is_shared:
                continue
            name = _related(queue.name, ".INITQ")
            define = f"DEFINE QLOCAL({_q(name)}) QSGDISP(SHARED) MAXMSGL({_INITIATION_Q_LENGTH})"
            found = f"QSGDISP(SHARED) TRIGTYPE(EVERY), and INITQ({initiation.name}) is each member's own"
            yield _of_queue(queue, found, define, f"ALTER QLOCAL({_q(queue.name)}) INITQ({_q(name)})")


def private_queue_by_shared_initiation_queue(given: Definitions) -> Iterator[Found]:
    """Yields a queue of one queue manager whose INITQ is shared by its group."""
    for queue in given.triggered():
        initiation = given.queues.get(queue.initiation_q_name)
        if not queue.is_shared and initiation is not None and initiation.is_shared:
            found = f"INITQ({initiation.name}) is shared, and the queue is not"
            yield _of_queue(queue, found, f"ALTER QLOCAL({_q(queue.name)}) INITQ({_BORN_WITH})")


def shared_backout_queue_of_one_member(given: Definitions) -> Iterator[Found]:
    """Yields a shared queue whose BOQNAME is a queue that this member has for itself."""
    for queue in given.triggered():
        aside = given.queues.get(queue.backout_requeue_q_name)
        if queue.is_shared and aside is not None and not aside.is_shared:
            name = _failed_queue(queue.name)
            define = "" if name in given.queue_names else f"DEFINE QLOCAL({_q(name)}) QSGDISP(SHARED) DEFPSIST(YES)"
            alter = f"ALTER QLOCAL({_q(queue.name)}) BOQNAME({_q(name)})"
            yield _of_queue(queue, f"QSGDISP(SHARED), and BOQNAME({aside.name}) is each member's own", define, alter)


def alias_to_nothing(given: Definitions) -> Iterator[Found]:
    """Yields an alias whose TARGET is blank, does not exist, or is an alias itself or a model."""
    for alias in given.aliases.values():
        target = alias.base_q_name
        if alias.name == DEFAULT_OBJECTS[ObjectType.QALIAS]:
            continue
        if not target:
            found, remedy = "TARGET is blank", f"DELETE QALIAS({_q(alias.name)})"
        elif target in given.aliases or target in given.models:
            what = "an alias itself" if target in given.aliases else "a model"
            found, remedy = f"TARGET({target}) is {what}", f"DELETE QALIAS({_q(alias.name)})"
        elif target not in given.queue_names:
            found, remedy = f"TARGET({target}) is not defined", f"DEFINE QLOCAL({_q(target)})"
        else:
            continue
        yield Found(ObjectType.QALIAS, alias.name, found, remedy)


def trailing_ampersand(given: Definitions) -> Iterator[Found]:
    """Yields processes whose ENVRDATA or APPLICID ends in ``&``."""
    for process in given.processes.values():
        ends = {"APPLICID": process.appl_id.rstrip(), "ENVRDATA": process.env_data.rstrip()}
        words = [word for word, text in ends.items() if text.endswith("&") and not process.shell]
        if words:
            without = " ".join(f"{word}({_text(ends[word].rstrip(' &'))})" for word in words)
            found = " ".join(f"{word}({_text(ends[word])})" for word in words)
            yield Found(ObjectType.PROCESS, process.name, found, f"ALTER PROCESS({_q(process.name)}) {without}")


def needs_a_shell(given: Definitions) -> Iterator[Found]:
    """Yields processes whose APPLICID or ENVRDATA has what only a shell understands."""
    for process in given.processes.values():
        if found := needs_shell(process):
            texts = {"APPLICID": process.appl_id, "ENVRDATA": process.env_data}
            other = {word: for_a_shell(text) for word, text in texts.items() if for_a_shell(text) != text}
            changed = "".join(f" {word}({_text(text)})" for word, text in other.items())
            remedy = f"ALTER PROCESS({_q(process.name)}) SHELL(YES){changed}"
            yield Found(ObjectType.PROCESS, process.name, found, remedy)


def placeholder_in_a_path(given: Definitions) -> Iterator[Found]:
    """Yields processes with {queue} or {trigdata} as part of a path in APPLICID, ENVRDATA or SPKARGS."""
    for process in given.processes.values():
        found = {ATTRIBUTES[ObjectType.PROCESS][name].mqsc: texts for name, *texts in path_words(process)}
        if found:
            words, without = (
                " ".join(f"{word}({_text(shlex.join(texts[which]))})" for word, texts in found.items())
                for which in (0, 1)
            )
            yield Found(ObjectType.PROCESS, process.name, words, f"ALTER PROCESS({_q(process.name)}) {without}")


def warm_interpreter_without_effect(given: Definitions) -> Iterator[Found]:
    """Yields processes with WARM(YES) and RUNAS, and with WARMMODS and no WARM(YES)."""
    for process in given.processes.values():
        if process.warm_interpreter and process.run_as:
            found, remedy = f"WARM(YES) RUNAS({process.run_as})", "WARM(NO)"
        elif process.warm_modules and not process.warm_interpreter:
            found, remedy = f"WARM(NO) WARMMODS({_text(process.warm_modules)})", "WARMMODS(' ')"
        else:
            continue
        yield Found(ObjectType.PROCESS, process.name, found, f"ALTER PROCESS({_q(process.name)}) {remedy}")


def spark_driver_open(given: Definitions) -> Iterator[Found]:
    """Yields Spark drivers without a secret, or local ones that listen beyond loopback."""
    for process in given.processes.values():
        if found := " ".join(spark_ports.open_to_others(process)):
            conf, variables = spark_ports.closed(process)
            remedy = f"ALTER PROCESS({_q(process.name)}) SPKCONF({_text(conf)}) SPKENV({_text(variables)})"
            yield Found(ObjectType.PROCESS, process.name, found, remedy)


def schedule_without_effect(given: Definitions) -> Iterator[Found]:
    """Yields schedules that have no queue, process or initiation queue to start anything by."""
    for schedule in given.schedules.values():
        name, alter = f"SCHEDULE({_q(schedule.name)})", f"ALTER SCHEDULE({_q(schedule.name)})"
        queue = given.queues.get(schedule.q_name)
        process = schedule.process_name if queue is None else queue.process_name
        initiation_q = schedule.initiation_q_name if queue is None else queue.initiation_q_name
        if schedule.q_name and queue is None:
            yield Found(
                ObjectType.SCHEDULE, schedule.name, f"QUEUE({schedule.q_name}) is no local queue", f"DELETE {name}"
            )
        elif process not in given.processes:
            found = f"PROCESS({process}) is not defined" if process else f"{schedule.q_name} has a blank PROCESS"
            name = process or _related(schedule.q_name, ".PROCESS")
            define = _define_process(given, name)
            of_queue = "" if process else f"ALTER QLOCAL({_q(schedule.q_name)}) PROCESS({_q(name)})"
            yield Found(ObjectType.SCHEDULE, schedule.name, found, "\n".join(filter(None, (define, of_queue))))
        elif initiation_q not in given.queues:
            what = alter if queue is None else f"ALTER QLOCAL({_q(queue.name)})"
            found = f"INITQ({initiation_q}) is no local queue" if initiation_q else "INITQ is blank"
            yield Found(ObjectType.SCHEDULE, schedule.name, found, f"{what} INITQ(SYSTEM.DEFAULT.INITIATION.QUEUE)")
        elif queue is not None and queue.is_shared and not given.queues[initiation_q].is_shared:
            shared = _related(initiation_q, ".SHARED")
            define = f"DEFINE QLOCAL({_q(shared)}) QSGDISP(SHARED)"
            remedy = f"{define}\nALTER QLOCAL({_q(queue.name)}) INITQ({_q(shared)})"
            yield Found(
                ObjectType.SCHEDULE,
                schedule.name,
                f"{queue.name} is shared, and its INITQ({initiation_q}) is not",
                remedy,
            )


def schedules_of_one_moment(given: Definitions) -> Iterator[Found]:
    """Yields a schedule with a moment at which another, of an earlier name, starts the same."""
    named = sorted(given.schedules.values(), key=lambda schedule: schedule.name)
    for number, schedule in enumerate(named):
        for other in named[:number]:
            same = (schedule.q_name, schedule.process_name) == (other.q_name, other.process_name)
            if same and (moment_ms := common_moment(schedule, other)):
                _, clock = moment(moment_ms).split(" ", 1)  # its date is one of many
                what = schedule.q_name or schedule.process_name
                found = f"it and {other.name} both start {what} at the same moments, such as one at {clock}"
                yield Found(ObjectType.SCHEDULE, schedule.name, found, f"DELETE SCHEDULE({_q(schedule.name)})")
                break


def schedule_in_a_skipped_hour(given: Definitions) -> Iterator[Found]:
    """Yields schedules with a time that their zone skips when its clocks are set forward."""
    for schedule in given.schedules.values():
        if gap := skipped(schedule):
            utc = f"ALTER SCHEDULE({_q(schedule.name)}) TIMEZONE(UTC)"
            yield Found(ObjectType.SCHEDULE, schedule.name, f"CRON({schedule.cron}) {schedule.timezone}: {gap}", utc)


def watch_to_nothing(given: Definitions) -> Iterator[Found]:
    """Yields watches whose queue is not defined."""
    for watch in given.watches.values():
        if watch.q_name not in given.queue_names:
            found = f"QUEUE({watch.q_name}) is not defined"
            yield Found(ObjectType.WATCH, watch.name, found, f"DEFINE QLOCAL({_q(watch.q_name)}) DEFPSIST(YES)")


def watches_of_the_same_files(given: Definitions) -> Iterator[Found]:
    """Yields watches of one directory whose patterns may match the same names, the later name of two."""
    watches = sorted(given.watches.values(), key=lambda watch: watch.name)
    for number, watch in enumerate(watches):
        for other in watches[:number]:
            if _path(watch.directory) == _path(other.directory) and overlap(watch.pattern, other.pattern):
                found = f"PATTERN({watch.pattern}), and PATTERN({other.pattern}) on {other.name}"
                found = f"DIRECTORY({watch.directory}) {found}"
                yield Found(ObjectType.WATCH, watch.name, found, f"DELETE WATCH({_q(watch.name)})")
                break


def watch_of_moved_files(given: Definitions) -> Iterator[Found]:
    """Yields watches that move files to a directory that is watched."""
    watched = {_path(watch.directory) for watch in given.watches.values()}
    for watch in given.watches.values():
        for word, path in (("DONE", watch.done), ("FAILED", watch.failed)):
            if path and _path(path) in watched:
                remedy = f"ALTER WATCH({_q(watch.name)}) {word}(' ')"
                yield Found(ObjectType.WATCH, watch.name, f"{word}({path}) is watched", remedy)


def _path(path: str) -> str:
    return posixpath.normpath(path)


RULES: dict[Rule, str] = {
    trigger_without_process: "Nothing starts: no trigger message is written while the process is not defined.",
    trigger_without_initiation_queue: "Nothing starts: there is no queue for the trigger message to go to.",
    priority_never_reached: "Nothing ever starts: a FIFO queue counts every message at DEFPRTY, under TRIGMPRI.",
    first_without_interval: "When one start comes to nothing (the program fails before it opens the queue, the trigger"
    " message is lost), no message after it starts another for 11.6 days, since others wait already.",
    every_without_cap: "Each message starts a program of its own; nothing but the monitor's own setting, which is not"
    " part of the definitions, keeps a burst from starting as many as there are messages.",
    depth_without_rearming: "It fires once: firing switches trigger control off, and if the program does not switch it"
    " on again, or its trigger message is lost in a restart, nothing starts any more and no message reports it.",
    extension_without_effect: "What was to bring the trigger back does nothing: REARM is for type DEPTH, BACKSTOP for"
    " FIRST; MAXWAIT is for every type.",
    initiation_queue_too_small: "No trigger message fits: each goes to the dead-letter queue, or is dropped.",
    triggered_work_not_persistent: "A message put without saying otherwise is gone after a restart.",
    no_dead_letter_queue: "A trigger message that its initiation queue cannot take is dropped, and nothing starts.",
    no_backout_threshold: "A message that makes its program fail makes the next one fail too, for ever, with all that"
    " lies behind it.",
    backout_requeue_without_threshold: "Nothing is ever put aside: a threshold of 0 is none, and a message that makes"
    " its program fail does so for ever.",
    backout_requeue_to_nothing: "What is put aside goes to the dead-letter queue instead or, where that is no way out"
    " either, is handed out again and again, as without BOREQ.",
    every_by_private_initiation_queues: "Each trigger message goes to the initiation queue of the member that the"
    " message was put through: where no monitor reads that one, nothing starts for the message, on no member.",
    private_queue_by_shared_initiation_queue: "The monitor of another member may take its trigger message, and start a"
    " program where the queue is not.",
    shared_backout_queue_of_one_member: "What makes a program fail lies on whichever member it failed, or nowhere where"
    " that member has no such queue.",
    alias_to_nothing: "A program that opens the alias is refused (2082 or 2001).",
    trailing_ampersand: "IBM's way to say that the monitor shall not wait: no shell is run here, so in ENVRDATA it is"
    " dropped, and in APPLICID it is part of what is started.",
    needs_a_shell: "No shell is run: the program gets it as an argument like others, or there is no such program."
    " SHELL(YES) runs the text by sh -c, as MQ's monitor does.",
    placeholder_in_a_path: "A queue may be called .. or /ETC/PASSWD, and trigger data is any text: the path may lead"
    " out of its directory. As a word of its own the program can make a file's name of it.",
    warm_interpreter_without_effect: "Every run is executed and none is forked: another user's programs never are, and"
    " without WARM(YES) no modules are imported in advance.",
    spark_driver_open: "A program that reaches its ports runs code as its user, without a password. A cluster's"
    " own secret must be known to Spark on all of its machines.",
    schedule_without_effect: "Each of its moments passes without a start.",
    schedules_of_one_moment: "Two trigger messages are written at that moment, and the second program finds what the"
    " first has left.",
    schedule_in_a_skipped_hour: "On the day on which the clocks are set forward it starts at the end of the gap, with"
    " whatever else begins then.",
    watch_to_nothing: "No file becomes a message: each waits in the directory until the queue is defined.",
    watches_of_the_same_files: "Each file goes to one of the two, whichever sees it first.",
    watch_of_moved_files: "A file that is done becomes a message once more; in the directory of its own watch without"
    " end.",
}


def _of_queue(queue: LocalQueue, found: str, *remedy: str) -> Found:
    return Found(ObjectType.QLOCAL, queue.name, found, "\n".join(line for line in remedy if line))


def _failed_queue(name: str) -> str:
    """Returns what the backout queue of a queue that has none may be called."""
    return _related(name, ".FAILED")


def _define_process(given: Definitions, name: str) -> str:
    return "" if name in given.processes else f"DEFINE PROCESS({_q(name)}) APPLICID('PROGRAM')"

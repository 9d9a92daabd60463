"""The table of metrics: name, type, labels, meaning, and how a snapshot has its values.

The names of a queue's and a queue manager's status are those of IBM's mq-metric-samples, so that dashboards for these
work; all others begin with trigmon. The reference page is held to this table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from trigmon.console.metrics.snapshot import NONE, PLATFORM, REST, Snapshot
from trigmon.mq.names import is_object_name
from trigmon.mq.run import Ending
from trigmon.rules.attention import KINDS

Labelled = Iterable[tuple[dict[str, str], Any]]
Values = Callable[[Snapshot], Labelled]

QMGR = ("qmgr", "platform", "description")
QUEUE = ("qmgr", "queue", "usage", "description", "cluster", "platform")

COPY = ("copy", "queue")
"""A queue elsewhere as QUEUE@QM, and the local queue."""

FROM_0 = ("event_message_dropped", "poison_message_discarded", "poison_message_kept", "poison_message_moved")
"""The events that have a series before the first: an alert by increase() misses what a new series begins with."""


class Metric(NamedTuple):
    """One row. A histogram's values are its figures: bounds, counts and sum; a counter's name ends in _total."""

    name: str
    kind: str
    labels: tuple[str, ...]
    text: str
    values: Values
    without_answer: bool = False  # it has a value also where the queue manager does not answer


def _of_queue(key: str, least: int | None = None, rest: Callable[[Iterable[Any]], Any] | None = None) -> Values:
    """Returns the values of a queue's row by its key: none below ``least``; ``rest`` makes one of the others'."""

    def values(snapshot: Snapshot) -> Labelled:
        for queue in snapshot.queues:
            value = queue.row[key]
            if least is None or value >= least:
                yield queue.labels, value
        if rest is not None and snapshot.rest:
            yield _labels_of_rest(snapshot), rest(row[key] for row in snapshot.rest)

    return values


def _labels_of_rest(snapshot: Snapshot) -> dict[str, str]:
    return dict(zip(QUEUE, (snapshot.q_mgr_name, REST, "NORMAL", NONE, NONE, PLATFORM), strict=True))


def _since(key: str) -> Values:
    """Returns the whole seconds since a moment of a queue's row, for queues that have had one."""

    def values(snapshot: Snapshot) -> Labelled:
        now_ms = snapshot.status["now_ms"]
        for queue in snapshot.queues:
            if at_ms := queue.row[key]:
                yield queue.labels, max(0, now_ms - at_ms) // 1000

    return values


def _of_qmgr(read: Callable[[Snapshot], Any]) -> Values:
    """Returns one value with the labels of mq-metric-samples' series of a queue manager."""

    def values(snapshot: Snapshot) -> Labelled:
        description = snapshot.status.get("description") or NONE
        yield dict(zip(QMGR, (snapshot.q_mgr_name, PLATFORM, description), strict=True)), read(snapshot)

    return values


def _own(read: Callable[[Snapshot], Iterable[tuple[Sequence[str], Any]]], *labels: str) -> Values:
    """Returns what ``read`` yields, with the labels qmgr and these."""

    def values(snapshot: Snapshot) -> Labelled:
        for given, value in read(snapshot):
            yield dict(zip(("qmgr", *labels), (snapshot.q_mgr_name, *given), strict=True)), value

    return values


def _gauge(name: str, text: str, read: Callable[[Snapshot], Any]) -> Metric:
    """Returns a metric of one series; None is no value."""

    def one(snapshot: Snapshot) -> Iterator[tuple[Sequence[str], Any]]:
        if (value := read(snapshot)) is not None:
            yield (), value

    return Metric(name, _kind(name), ("qmgr",), text, _own(one))


def _series(
    name: str, labels: tuple[str, ...], text: str, read: Callable[[Snapshot], Iterable[tuple[Sequence[str], Any]]]
) -> Metric:
    """Returns a metric of several series; ``read`` yields the values of the labels behind qmgr, and the value."""
    return Metric(name, _kind(name), ("qmgr", *labels), text, _own(read, *labels))


def _kind(name: str) -> str:
    return "counter" if name.endswith("_total") else "histogram" if name.endswith("_seconds") else "gauge"


def _queue(name: str, text: str, values: Values) -> Metric:
    return Metric(name, _kind(name), QUEUE, text, values)


def _qmgr(name: str, text: str, read: Callable[[Snapshot], Any], *, without_answer: bool = False) -> Metric:
    return Metric(name, "gauge", QMGR, text, _of_qmgr(read), without_answer)


def _counted(key: str) -> Callable[[Snapshot], Iterator[tuple[Sequence[str], Any]]]:
    """Returns the reader of what the queue manager counted by one word, or histograms by process."""
    return lambda snapshot: (((word,), value) for word, value in snapshot.statistics[key].items())


def _events(snapshot: Snapshot) -> Iterator[tuple[Sequence[str], Any]]:
    return (((name,), count) for name, count in (dict.fromkeys(FROM_0, 0) | snapshot.statistics["events"]).items())


def _ended(snapshot: Snapshot) -> Iterator[tuple[Sequence[str], Any]]:
    return (((process, outcome), count) for process, outcome, count in snapshot.statistics["runs_ended"])


def _in_progress(snapshot: Snapshot) -> Iterator[tuple[Sequence[str], Any]]:
    counts: dict[str, int] = {}
    for slot, count in snapshot.statistics["runs_in_progress"].items():
        # A run without a process is counted by its command line, which is nobody's label.
        process = slot if is_object_name(slot) else ""
        counts[process] = counts.get(process, 0) + count
    return (((process,), count) for process, count in counts.items())


def _attention(snapshot: Snapshot) -> Iterator[tuple[Sequence[str], Any]]:
    found = [each["kind"] for each in snapshot.status["attention"]]
    return (((kind,), found.count(kind)) for kind in KINDS)


def _pauses(snapshot: Snapshot) -> Iterator[tuple[Sequence[str], Any]]:
    shown = {queue.row["name"] for queue in snapshot.queues}
    held = {each["name"] for each in snapshot.status["attention"] if each["kind"] == "held"}
    for pause in snapshot.status["pauses"]:
        if pause["what"] != "queue" or pause["name"] in shown:
            yield (pause["what"], pause["name"], "breaker" if pause["name"] in held else "operator"), 1


def _initiation(key: str) -> Callable[[Snapshot], Iterator[tuple[Sequence[str], Any]]]:
    return lambda snapshot: (((row["name"],), row[key]) for row in snapshot.status["initiation_queues"])


def _puts_allowed(snapshot: Snapshot) -> int:
    return int(all(each["kind"] != "disk" for each in snapshot.status["attention"]))


def _status(key: str) -> Callable[[Snapshot], Any]:
    return lambda snapshot: snapshot.status[key]


def _copies(key: str, least: int | None = None) -> Callable[[Snapshot], Iterator[tuple[Sequence[str], Any]]]:
    return lambda snapshot: (
        ((row["name"], row["q_name"]), row[key])
        for row in snapshot.status.get("copies", [])
        if least is None or row[key] >= least
    )


def _copies_since(snapshot: Snapshot) -> Iterator[tuple[Sequence[str], Any]]:
    """Yields the whole seconds since the last commit of each copy that has had one."""
    now_ms = snapshot.status["now_ms"]
    for labels, at_ms in _copies("last_copy_ms", 1)(snapshot):
        yield labels, max(0, now_ms - at_ms) // 1000


def _copies_up(snapshot: Snapshot) -> Iterator[tuple[Sequence[str], Any]]:
    return ((labels, int(not problem)) for labels, problem in _copies("problem")(snapshot))


def _bridge_monitors(snapshot: Snapshot) -> Iterator[tuple[Sequence[str], Any]]:
    """Yields how many monitors serve each initiation queue elsewhere, 0 where those that should cannot."""
    counts: dict[tuple[str, str], int] = {}
    for row in snapshot.status.get("bridges", []):
        of = row["bridge"], row["initiation_q"]
        counts[of] = counts.get(of, 0) + (not row["problem"])
    return ((of, count) for of, count in counts.items())


def _room(key: str) -> Callable[[Snapshot], Any]:
    return lambda snapshot: snapshot.statistics["room"].get(key)


def _spark(attribute: str) -> Callable[[Snapshot], Iterator[tuple[Sequence[str], Any]]]:
    return lambda snapshot: (
        ((each.server_id, each.master), int(getattr(each, attribute))) for each in snapshot.servers
    )


METRICS: tuple[Metric, ...] = (
    # -- queues, as mq-metric-samples names them
    _queue("ibmmq_queue_depth", "Messages on the queue (CURDEPTH)", _of_queue("current_q_depth", rest=sum)),
    _queue("ibmmq_queue_attribute_max_depth", "Most messages on the queue (MAXDEPTH)", _of_queue("max_q_depth")),
    _queue(
        "ibmmq_queue_oldest_message_age",
        "Age of the oldest message in seconds (MSGAGE); 0 for none",
        _of_queue("oldest_age_s", rest=max),
    ),
    _queue("ibmmq_queue_input_handles", "Handles open for input (IPPROCS)", _of_queue("open_input_count", rest=sum)),
    _queue("ibmmq_queue_output_handles", "Handles open for output (OPPROCS)", _of_queue("open_output_count", rest=sum)),
    _queue(
        "ibmmq_queue_uncommitted_messages",
        "Messages put or got in units of work that have not ended (UNCOM)",
        _of_queue("uncommitted_msgs", rest=sum),
    ),
    _queue(
        "ibmmq_queue_time_since_put",
        "Seconds since the last put (LPUTDATE, LPUTTIME); no series before the first",
        _since("last_put_ms"),
    ),
    _queue(
        "ibmmq_queue_time_since_get",
        "Seconds since the last get (LGETDATE, LGETTIME); no series before the first",
        _since("last_get_ms"),
    ),
    _queue(
        "ibmmq_queue_qtime_short",
        "Microseconds that got messages had been on the queue, of late (QTIME); no series before the first get",
        _of_queue("q_time_short_us", least=0),
    ),
    _queue(
        "ibmmq_queue_qtime_long",
        "Microseconds that got messages had been on the queue, over a longer time (QTIME)",
        _of_queue("q_time_long_us", least=0),
    ),
    _queue(
        "ibmmq_queue_hi_depth",
        "Most messages on the queue since the start, or since RESET QSTATS (HIQDEPTH)",
        _of_queue("high_q_depth"),
    ),
    # -- queues, further ones
    _queue(
        "trigmon_queue_puts_total",
        "Messages put on the queue, committed or not; RESET QSTATS begins anew",
        _of_queue("puts"),
    ),
    _queue(
        "trigmon_queue_gets_total",
        "Messages got from the queue, committed or not; RESET QSTATS begins anew",
        _of_queue("gets"),
    ),
    # -- the queue manager, as mq-metric-samples names it
    _qmgr(
        "ibmmq_qmgr_status",
        "MQQMSTA: 2 running, 3 stopping; 0 it does not answer",
        lambda snapshot: int(snapshot.qmgr_status),
        without_answer=True,
    ),
    _qmgr(
        "ibmmq_qmgr_uptime",
        "Seconds since the queue manager started",
        lambda snapshot: (snapshot.status["now_ms"] - snapshot.status["started_ms"]) // 1000,
    ),
    _qmgr("ibmmq_qmgr_connection_count", "Connections, this client's among them", _status("connections")),
    _qmgr(
        "ibmmq_qmgr_exporter_collection_time",
        "Seconds that it took to read the queue manager",
        lambda snapshot: round(snapshot.taken_s, 6),
        without_answer=True,
    ),
    # -- what needs attention
    _series("trigmon_attention", ("kind",), "What trigmon status lists as needing attention, by its kind", _attention),
    _series(
        "trigmon_paused",
        ("what", "name", "by"),
        "1 for each pause of a queue, a process or everything, by an operator or the breaker",
        _pauses,
    ),
    _gauge("trigmon_dead_letters", "Messages on the dead-letter queue", lambda snapshot: snapshot.dead_letters),
    _gauge("trigmon_puts_allowed", "0 while puts are refused because the disk is nearly full", _puts_allowed),
    # -- triggers and runs
    _series(
        "trigmon_triggers_total",
        ("occasion",),
        "Trigger messages written, by the occasion (the number of the condition)",
        _counted("triggers"),
    ),
    _series(
        "trigmon_monitors", ("initiation_queue",), "Monitors that read the initiation queue", _initiation("monitors")
    ),
    _series("trigmon_runs_waiting", ("initiation_queue",), "Runs that are held", _initiation("runs_held")),
    _series("trigmon_runs_in_progress", ("process",), "Runs that are due or have a program", _in_progress),
    _series(
        "trigmon_runs_total",
        ("process", "outcome"),
        f"Runs that ended: {', '.join(Ending)}",
        _ended,
    ),
    _series(
        "trigmon_run_duration_seconds",
        ("process",),
        "Seconds from the start of a program to its end",
        _counted("run_durations"),
    ),
    _series(
        "trigmon_put_to_start_seconds",
        ("process",),
        "Seconds from the event that triggered to the start of the program, first tries only",
        _counted("put_to_start"),
    ),
    # -- the queue manager's work
    _gauge(
        "trigmon_calls_total",
        "Calls that were performed, also the queue manager's own",
        lambda it: it.statistics["calls"],
    ),
    _gauge("trigmon_turn_seconds", "Seconds of a turn, its commit among them", lambda it: it.statistics["turns"]),
    _gauge("trigmon_commit_seconds", "Seconds of the store's commit of a turn", lambda it: it.statistics["commits"]),
    _series(
        "trigmon_events_total",
        ("event",),
        "Events of the queue manager by name, as in the log",
        _events,
    ),
    _series(
        "trigmon_refused_calls_total", ("reason",), "Calls that were refused, by reason", _counted("refused_calls")
    ),
    _gauge("trigmon_waiting_gets", "Gets that wait for a message", _status("waiting_gets")),
    _gauge("trigmon_open_units", "Units of work that have not ended", _status("open_units")),
    _gauge("trigmon_reservations", "Reservations of which messages are left", _status("reservations")),
    # -- copies of queues elsewhere
    _series("trigmon_copied_messages_total", COPY, "Messages that a copy has copied since it began", _copies("copied")),
    _series("trigmon_copy_batches_total", COPY, "Units of work that put messages, since it began", _copies("batches")),
    _series("trigmon_copy_up", COPY, "1 while nothing hinders the copy, 0 while something does", _copies_up),
    _series("trigmon_copy_left", COPY, "Messages that are left there; no series where not known", _copies("left", 0)),
    _series(
        "trigmon_copy_lag_ms",
        COPY,
        "From the put there of the last message to its put here; grows with the clock while the copy is hindered",
        _copies("lag_ms"),
    ),
    _series(
        "trigmon_copy_time_since_commit",
        COPY,
        "Seconds since the copy last committed messages here; no series before the first",
        _copies_since,
    ),
    _series("trigmon_copy_put_aside", COPY, "Messages that a copy put on the dead-letter queue", _copies("put_aside")),
    # -- initiation queues elsewhere
    _series(
        "trigmon_bridge_monitors",
        ("bridge", "initiation_queue"),
        "Monitors that serve the initiation queue of a queue manager elsewhere, QUEUE@QM; 0 while none can",
        _bridge_monitors,
    ),
    # -- the disk, and Spark
    _gauge("trigmon_disk_free_bytes", "Free bytes of the data directory's file system", _room("free_bytes")),
    _gauge("trigmon_disk_reserve_bytes", "With less free space than this, puts are refused", _room("reserve_bytes")),
    _gauge("trigmon_store_bytes", "Bytes of the store's files", _room("store_bytes")),
    _series(
        "trigmon_spark_server_up",
        ("server", "master"),
        "1 for a Spark Connect server of a monitor that accepts connections",
        _spark("is_up"),
    ),
    _series(
        "trigmon_spark_server_resident_bytes",
        ("server", "master"),
        "Memory of a Spark Connect server and its Python workers",
        _spark("resident_bytes"),
    ),
    _series("trigmon_build_info", ("version",), "1, with the version", lambda snapshot: [((snapshot.version,), 1)]),
)

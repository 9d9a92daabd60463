"""Each metric has a scenario that changes it, on a real queue manager with its monitor."""

from __future__ import annotations

import itertools
import threading
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field

import pytest

from tests.console.metrics.exported import Exported
from tests.daemons import define, queue_managers
from tests.waiting import until
from trigmon.console.metrics.metric_table import METRICS
from trigmon.mq.calls import Alter, BridgeState, Controls, CopyState, Pause, ReportCopy, Resume
from trigmon.mq.errors import QFull

INITQ, DEAD = "SYSTEM.DEFAULT.INITIATION.QUEUE", "SYSTEM.DEAD.LETTER.QUEUE"

NUMBERS = itertools.count(1)


class Stage:
    """A queue manager, a connection, and what is open until the test ends."""

    def __init__(self, exported):
        self.exported = exported
        self.stack = ExitStack()
        self.qm = self.stack.enter_context(exported.daemon.connect())
        self.q_name = "Q"

    def put(self, count=1):
        for _ in range(count):
            self.qm.put(self.q_name, b"m")

    def get(self):
        with self.qm.open(self.q_name, "input_shared") as queue:
            queue.get()

    def open(self, how, name=None):
        self.stack.enter_context(self.qm.open(name or self.q_name, how))

    def unit(self):
        """Puts in a unit of work that another connection leaves open."""
        other = self.stack.enter_context(self.exported.daemon.connect())
        self.stack.callback(other.backout)
        other.put(self.q_name, b"m", syncpoint=True)

    def run(self, appl_id="/bin/true"):
        """Starts a program by a put, for a queue and a process of its own."""
        name = f"RUN.{next(NUMBERS)}"
        define(self.qm, name, "PROCESS", appl_id=appl_id, retry=0, tmc_argument="no")
        armed = {"trigger_control": "on", "trigger_type": "every", "initiation_q_name": INITQ}
        define(self.qm, name, process_name=name, **armed)
        self.qm.put(name, b"m")

    def held(self):
        self.qm.call(Pause(what="everything"))
        self.stack.callback(self.exported.daemon.trigmon, "queue", "resume", "--all")
        self.run("/bin/echo held")

    def dead_letter(self):
        self.qm.call(Alter(object_type="QMGR", name="QM1", attributes={"dead_letter_q_name": DEAD}))
        self.qm.put(DEAD, b"m")

    def pause(self):
        self.qm.call(Pause(what="queue", name=self.q_name))
        self.stack.callback(self.qm.call, Resume(what="queue", name=self.q_name))

    def refused(self):
        define(self.qm, "FULL", max_q_depth=1)
        with suppress(QFull):
            self.qm.put_many("FULL", [b"m"] * 2)

    def wait(self):
        """Lets a get wait in another thread; the put at the end of the test ends it."""
        q_name, daemon = self.q_name, self.exported.daemon

        def get():
            with daemon.connect() as other, other.open(q_name, "input_shared") as queue:
                queue.get(wait_interval_ms=600_000)

        thread = threading.Thread(target=get)
        thread.start()
        self.stack.callback(thread.join)
        self.stack.callback(self.put)

    def reserve(self):
        self.put()
        handle = self.stack.enter_context(self.qm.open(self.q_name, "input_shared"))
        handle.reserve("JOB")

    def alter(self):
        self.qm.call(Alter(object_type="QLOCAL", name=self.q_name, attributes={"max_q_depth": 77}))

    def nothing(self):
        """Does nothing: it changes by itself."""

    def copy(self):
        """Reports a copy as the process does that copies."""
        state = CopyState(name="Q@QM9", q_name="Q", copied=5, left=4, lag_ms=3, put_aside=2, batches=6, last_copy_ms=1)
        self.stack.enter_context(self.exported.daemon.connect()).call(ReportCopy(state=state))

    def bridge(self):
        """Reports an initiation queue elsewhere as a monitor does that serves it, and as one that cannot."""
        for monitor, problem in (("m:1", ""), ("m:2", "MQCONNX to QM9: 2538")):
            states = [BridgeState("PROD", "INITQ@QM9", problem)]
            self.stack.enter_context(self.exported.daemon.connect()).call(Controls(monitor=monitor, bridges=states))

    def store(self):
        for _ in range(40):
            self.qm.put("BIG", b"x" * 1_000_000, persistence="persistent")


@dataclass
class Scenario:
    """What is done, and by how much the value of these labels rises at least; a sample's name where it is another."""

    act: object
    by: float = 1
    labels: dict = field(default_factory=dict)
    sample: str = ""


OF_Q = {"queue": "Q"}
OF_COPY = {"copy": "Q@QM9", "queue": "Q"}
SCENARIOS = {
    "ibmmq_queue_depth": Scenario(Stage.put, 1, OF_Q),
    "ibmmq_queue_attribute_max_depth": Scenario(Stage.alter, 77 - 5000, OF_Q),
    "ibmmq_queue_oldest_message_age": Scenario(Stage.put, 1, OF_Q),
    "ibmmq_queue_input_handles": Scenario(lambda it: it.open("input_shared"), 1, OF_Q),
    "ibmmq_queue_output_handles": Scenario(lambda it: it.open("output"), 1, OF_Q),
    "ibmmq_queue_uncommitted_messages": Scenario(Stage.unit, 1, OF_Q),
    "ibmmq_queue_time_since_put": Scenario(Stage.put, 1, OF_Q),
    "ibmmq_queue_time_since_get": Scenario(lambda it: (it.put(), it.get()), 1, OF_Q),
    "ibmmq_queue_qtime_short": Scenario(lambda it: (it.put(), until(lambda: age(it)), it.get()), 1_000_000, OF_Q),
    "ibmmq_queue_qtime_long": Scenario(lambda it: (it.put(), until(lambda: age(it)), it.get()), 1_000_000, OF_Q),
    "ibmmq_queue_hi_depth": Scenario(lambda it: it.put(3), 3, OF_Q),
    "trigmon_queue_puts_total": Scenario(lambda it: it.put(2), 2, OF_Q),
    "trigmon_queue_gets_total": Scenario(lambda it: (it.put(), it.get()), 1, OF_Q),
    "ibmmq_qmgr_uptime": Scenario(Stage.nothing, 1),
    "ibmmq_qmgr_connection_count": Scenario(Stage.unit, 1),
    "trigmon_attention": Scenario(Stage.pause, 1, {"kind": "paused"}),
    "trigmon_paused": Scenario(Stage.pause, 1, {"what": "queue", "name": "Q", "by": "operator"}),
    "trigmon_dead_letters": Scenario(Stage.dead_letter),
    "trigmon_triggers_total": Scenario(Stage.run, 1, {"occasion": "1"}),
    "trigmon_monitors": Scenario(lambda it: it.open("input_shared", INITQ), 1, {"initiation_queue": INITQ}),
    "trigmon_runs_waiting": Scenario(Stage.held, 1, {"initiation_queue": INITQ}),
    "trigmon_runs_in_progress": Scenario(lambda it: it.run("/bin/sleep 10")),
    "trigmon_runs_total": Scenario(lambda it: it.run("/bin/false"), 1, {"outcome": "failed"}),
    "trigmon_run_duration_seconds": Scenario(Stage.run, 1, {"le": "+Inf"}, "trigmon_run_duration_seconds_bucket"),
    "trigmon_put_to_start_seconds": Scenario(Stage.run, 1, {}, "trigmon_put_to_start_seconds_count"),
    "trigmon_calls_total": Scenario(Stage.put, 1),
    "trigmon_turn_seconds": Scenario(Stage.put, 1, {"le": "+Inf"}, "trigmon_turn_seconds_bucket"),
    "trigmon_commit_seconds": Scenario(Stage.put, 1e-9, {}, "trigmon_commit_seconds_sum"),
    "trigmon_events_total": Scenario(Stage.run, 1, {"event": "trigger_fired"}),
    "trigmon_refused_calls_total": Scenario(Stage.refused, 1, {"reason": "MQRC_Q_FULL"}),
    "trigmon_waiting_gets": Scenario(Stage.wait, 1),
    "trigmon_open_units": Scenario(Stage.unit, 1),
    "trigmon_reservations": Scenario(Stage.reserve, 1),
    "trigmon_copied_messages_total": Scenario(Stage.copy, 5, OF_COPY),
    "trigmon_copy_batches_total": Scenario(Stage.copy, 6, OF_COPY),
    "trigmon_copy_up": Scenario(Stage.copy, 1, OF_COPY),
    "trigmon_copy_left": Scenario(Stage.copy, 4, OF_COPY),
    "trigmon_copy_lag_ms": Scenario(Stage.copy, 3, OF_COPY),
    "trigmon_copy_time_since_commit": Scenario(Stage.copy, 1, OF_COPY),
    "trigmon_copy_put_aside": Scenario(Stage.copy, 2, OF_COPY),
    "trigmon_bridge_monitors": Scenario(Stage.bridge, 1, {"bridge": "PROD", "initiation_queue": "INITQ@QM9"}),
    "trigmon_disk_free_bytes": Scenario(Stage.store, -1_000_000),
    "trigmon_store_bytes": Scenario(Stage.store, 1_000_000),
}
ELSEWHERE = {
    "ibmmq_qmgr_status": "tests/console/metrics/test_exporter.py: it stops",
    "ibmmq_qmgr_exporter_collection_time": "it is never the same",
    "trigmon_puts_allowed": "tests/console/metrics/test_exporter.py: a full disk",
    "trigmon_disk_reserve_bytes": "tests/console/metrics/test_exporter.py: a setting",
    "trigmon_spark_server_up": "tests/monitor/test_warm_runs.py: a server of Spark",
    "trigmon_spark_server_resident_bytes": "tests/monitor/test_warm_runs.py: a server of Spark",
    "trigmon_build_info": "a version has one",
}


def age(stage):
    return stage.exported.scrape().value("ibmmq_queue_oldest_message_age", queue=stage.q_name) > 1


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    with queue_managers(lambda: tmp_path_factory.mktemp("qm")) as make:
        one = Exported(make, with_monitor=True)
        with one.daemon.connect() as qm:
            define(qm, "BIG", max_msg_length=4_194_304)
        until(lambda: one.scrape().value("ibmmq_queue_input_handles", queue=INITQ) == 1)
        yield one


@pytest.fixture
def stage(exported):
    made = Stage(exported)
    define(made.qm, "Q")
    yield made
    made.stack.close()
    assert exported.daemon.trigmon("queue", "delete", "Q", "--purge").returncode == 0


def test_each_metric_of_the_table_has_a_scenario():
    assert sorted(SCENARIOS | ELSEWHERE) == sorted(metric.name for metric in METRICS)


@pytest.mark.parametrize("name", SCENARIOS)
def test_it_changes_it(stage, name):
    scenario = SCENARIOS[name]
    sample = scenario.sample or name

    def value():
        return stage.exported.scrape().value(sample, **scenario.labels)

    before = value()
    scenario.act(stage)
    if scenario.by > 0:
        until(lambda: value() >= before + scenario.by)
    else:
        until(lambda: value() <= before + scenario.by)

"""The monitor in a thread, against a real queue manager, starting real programs."""

from __future__ import annotations

import re
import sys
import threading
import time

import pytest

import trigmon
from tests.daemons import define
from tests.strangers import as_user
from tests.waiting import until
from trigmon.client.link import Link
from trigmon.launch.keeper_client import Keeper
from trigmon.monitor import monitor
from trigmon.mq.calls import Alter, ChangeRun, GetMany, Put, Runs
from trigmon.mq.descriptors import FORMAT_TRIGGER, MessageDescriptor, TriggerMessage, pack_tm, unpack_dlh, unpack_tm
from trigmon.mq.enums import ApplType


def trigger(stage, **fields):
    """Puts a trigger message that no trigger event made."""
    message = TriggerMessage(**({"q_name": "FOREIGN", "appl_type": 6} | fields))
    stage.qm.put(stage.initq, pack_tm(message), format=FORMAT_TRIGGER)
    return message


def test_a_put_starts_the_program_and_the_run_is_on_record_from_cause_to_end(stage):
    job = stage.program('echo "$1"; echo "oh dear" >&2; exit 3')
    q_name = stage.queue(f"{job} {{queue}}", trigger_data="t", user_data="u")
    stage.watch()
    stage.qm.put(q_name, b"one")
    (run,) = stage.wait_for(q_name=q_name, state="exited")
    assert run["process_name"] == f"{q_name}.P"
    assert (run["trigger_data"], run["user_data"], run["appl_type"]) == ("t", "u", 6)
    assert run["argv"] == [str(job), q_name]
    assert (run["exit_status"], run["signal"], run["why"]) == (3, None, "ended with status 3: oh dear")
    assert run["stderr_tail"] == "oh dear\n"
    assert 0 < run["recorded_ms"] <= run["start_ms"] <= run["end_ms"]
    assert run["pid"] > 0
    assert run["monitor"].endswith(f":{stage.initq}:1")
    directory = stage.data / "runs" / run["run_id"]
    assert run["directory"] == str(directory)
    assert (directory / "stdout").read_text() == f"{q_name}\n"
    assert stage.depth(stage.initq) == 0


def test_a_get_records_the_run_and_its_start_comes_next(stage, monkeypatch):
    steps = []

    def noted(right, word):
        def step(self, *given, **named):
            steps.append((threading.get_ident(), word(given)))
            return right(self, *given, **named)

        return step

    monkeypatch.setattr(Link, "call", noted(Link.call, lambda given: type(given[0])))
    monkeypatch.setattr(Keeper, "start", noted(Keeper.start, lambda _: "start"))
    q_name = stage.queue(stage.program("true"))
    stage.watch()
    stage.qm.put(q_name, b"one")
    stage.wait_for(q_name=q_name, state="exited")
    (thread,) = {who for who, what in steps if what == "start"}
    of_thread = [what for who, what in steps if who == thread]
    assert of_thread[of_thread.index("start") - 1] is GetMany


def test_a_program_whose_child_was_killed_names_the_signal_and_no_warning_as_the_cause(stage):
    job = stage.program("""echo "x.py:1: UserWarning: slow" >&2; sh -c 'kill -9 $$'""")
    q_name = stage.queue(job)
    stage.watch()
    stage.qm.put(q_name, b"one")
    (run,) = stage.wait_for(q_name=q_name, state="exited")
    assert (run["exit_status"], run["signal"]) == (137, None)
    assert run["why"].startswith("ended with status 137, as after SIGKILL; last output: ")


def test_a_program_finds_its_queue_manager_and_its_cause(stage):
    job = stage.program('printf "%s\\n" "$TRIGMON_QMGR" "$TRIGMON_QNAME" "$TRIGMON_PROCESS" "$TRIGMON_RUN"')
    q_name = stage.queue(job)
    stage.watch()
    stage.qm.put(q_name, b"one")
    (run,) = stage.wait_for(q_name=q_name, state="exited")
    reported = (stage.data / "runs" / run["run_id"] / "stdout").read_text().splitlines()
    assert reported == [stage.daemon.address, q_name, f"{q_name}.P", run["run_id"]]


def test_one_program_is_not_waited_for_before_the_next_is_started(stage):
    slow = stage.queue(stage.program("sleep 60", "slow"), "SLOW")
    quick = stage.queue(stage.program("true", "quick"), "QUICK")
    stage.watch()
    stage.qm.put(slow, b"one")
    stage.qm.put(quick, b"two")
    stage.wait_for(q_name=quick, state="exited")
    assert stage.wait_for(q_name=slow, state="started")


def test_triggers_beyond_the_cap_are_held_and_started_in_order_when_slots_free(stage):
    gate = stage.directory / "gate"
    job = stage.program(f"while [ ! -e {gate} ]; do sleep 0.02; done")
    q_name = stage.queue(job, instances=2)
    stage.watch()
    for _ in range(5):
        stage.qm.put(q_name, b"one")
    held = stage.wait_for(3, q_name=q_name, state="held")
    running = stage.wait_for(2, q_name=q_name, state="started")
    assert held[0]["why"] == f"2 of {q_name}.P run, and 2 may run at a time"
    assert [run["pid"] for run in held] == [0, 0, 0]
    time.sleep(0.1)
    assert len(stage.runs(q_name=q_name, state="started")) == 2
    gate.touch()
    ended = stage.wait_for(5, q_name=q_name, state="exited")
    assert {run["run_id"] for run in ended} == {run["run_id"] for run in held + running}
    starts = [run["start_ms"] for run in ended]
    assert starts == sorted(starts)
    assert all(run["argv"] for run in ended)


def test_the_monitors_own_cap_holds_where_the_definition_sets_none(stage):
    q_name = stage.queue(stage.program("sleep 60"))
    stage.watch(instances=1)
    stage.qm.put(q_name, b"one")
    stage.qm.put(q_name, b"two")
    assert len(stage.wait_for(q_name=q_name, state="held")) == 1
    assert len(stage.wait_for(q_name=q_name, state="started")) == 1


STORM = """\
import sys, trigmon
with trigmon.connect() as qm, qm.open(trigmon.triggered().q_name, "input_shared") as q:
    q.get(syncpoint=True)
    qm.backout()
sys.exit(1)
"""


def test_a_program_that_fails_and_leaves_its_messages_is_started_ever_more_seldom_until_it_succeeds(stage):
    script, healed = stage.directory / "storm.py", stage.directory / "healed"
    script.write_text(STORM)
    job = stage.program(f"[ -e {healed} ] && exit 0; exec {sys.executable} {script}")
    q_name = stage.queue(job, trigger_type="first")
    stage.watch()
    stage.qm.put(q_name, b"poison", persistence="persistent")
    began = time.monotonic()
    until(lambda: any("failed 3 times in a row" in run["why"] for run in stage.runs(q_name=q_name, state="held")))
    time.sleep(max(0.0, 5 - (time.monotonic() - began)))
    assert len(stage.runs(q_name=q_name)) <= 6
    (held,) = stage.runs(q_name=q_name, state="held")
    assert re.fullmatch(
        r"failed \d times in a row; (not started before .* UTC|the end of run \w+ decides)", held["why"]
    )
    healed.touch()
    until(lambda: any(run["exit_status"] == 0 for run in stage.runs(q_name=q_name)))
    stage.qm.put(q_name, b"more")
    assert not stage.runs(q_name=q_name, state="held")


def test_a_killed_program_is_on_record_with_its_signal(stage):
    q_name = stage.queue(stage.program("kill -9 $$"))
    stage.watch()
    stage.qm.put(q_name, b"one")
    (run,) = stage.wait_for(q_name=q_name, state="exited")
    assert (run["exit_status"], run["signal"], run["why"]) == (None, 9, "killed by SIGKILL")


def test_the_directory_of_the_definition_is_where_its_program_is_found_and_runs(stage):
    stage.program("pwd")
    q_name = stage.queue("job", working_directory=str(stage.directory))
    stage.watch()
    stage.qm.put(q_name, b"one")
    (run,) = stage.wait_for(q_name=q_name, state="exited")
    assert (stage.data / "runs" / run["run_id"] / "stdout").read_text() == f"{stage.directory}\n"


def test_a_trigger_message_that_anybody_put_runs_the_process_it_names_as_it_is_defined(stage):
    q_name = stage.queue(f"{stage.program('echo hello')} {{userdata}}", user_data="u")
    stage.watch()
    trap = stage.directory / "trap"
    trigger(stage, q_name=q_name, process_name=f"{q_name}.P", appl_id=f"/usr/bin/touch {trap}", user_data="v")
    (run,) = stage.wait_for(q_name=q_name, state="exited")
    assert run["argv"][1:] == ["u"]
    assert not trap.exists()


def test_trigger_messages_that_wait_are_served_when_the_monitor_comes(stage):
    q_name = stage.queue(stage.program("true"))
    trigger(stage, q_name=q_name, process_name=f"{q_name}.P", appl_id="true")
    trigger(stage, q_name=q_name, process_name=f"{q_name}.P", appl_id="true")
    stage.watch()
    stage.wait_for(2, q_name=q_name, state="exited")


def test_a_trigger_message_over_tcp_runs_no_program_of_its_writers(daemon):
    machine = daemon(with_monitor=True, settings={"server.tcp": "127.0.0.1:0"})
    host, port = machine.wait_for_event("ready")["listens"][1].split(":")
    trap = machine.home / "trap"
    message = TriggerMessage(q_name="Q", process_name="P", appl_type=6, appl_id=f"/usr/bin/touch {trap}")
    descriptor = {"put_appl_type": int(ApplType.QMGR), "put_appl_name": "QM1", "user_identifier": "root"}
    initiation_q = "SYSTEM.DEFAULT.INITIATION.QUEUE"
    with trigmon.connect(f"tcp://{host}:{port}", application="QM1", run_id="") as anybody:
        assert not (anybody.administrator or anybody.monitor)
        given = MessageDescriptor(format=FORMAT_TRIGGER, **descriptor)
        anybody.call(Put(q_name=initiation_q, descriptor=given, data=pack_tm(message)))
        (run,) = until(lambda: anybody.call(Runs(where={"q_name": "Q"})).rows)
        with pytest.raises(trigmon.NotAuthorized, match=r"change_run needs a monitor \(server\.monitors\)"):
            anybody.call(ChangeRun(run_id=run["run_id"], fields={"state": "held"}))
    assert (run["state"], run["argv"]) == ("failed", [])
    assert "not by the queue manager, and process P is not defined here" in run["why"]
    assert not trap.exists()


def test_the_dead_letter_of_a_forged_trigger_message_names_its_putter(passable):
    machine = passable(with_monitor=True, settings={"server.socket_mode": "0666"})
    machine.wait_for_event("ready")
    letters = "SYSTEM.DEAD.LETTER.QUEUE"
    with machine.connect() as qm:
        qm.call(Alter(object_type="QMGR", name="", attributes={"dead_letter_q_name": letters}))

        def forge():
            with machine.connect() as anybody:
                message = TriggerMessage(q_name="Q", process_name="P", appl_type=6, appl_id="/bin/true")
                given = MessageDescriptor(format=FORMAT_TRIGGER)
                anybody.call(Put(q_name="SYSTEM.DEFAULT.INITIATION.QUEUE", descriptor=given, data=pack_tm(message)))

        as_user(5001, forge)
        with qm.open(letters, "input_shared") as queue:
            letter = queue.get(wait_interval_ms=30_000)
        (run,) = until(lambda: qm.call(Runs(where={"q_name": "Q"})).rows)
    assert letter.user_identifier == "5001"
    assert "put by 5001" in run["why"]


def test_a_user_that_may_not_keep_the_ledger_cannot_be_a_monitor(daemon, tmp_path):
    machine = daemon(settings={"server.tcp": "127.0.0.1:0"})
    host, port = machine.wait_for_event("ready")["listens"][1].split(":")
    with pytest.raises(trigmon.NotAuthorized, match=r"name it in server\.monitors"):
        monitor.run(f"tcp://{host}:{port}", monitor.MonitorOptions(data=tmp_path), stop=threading.Event())


class TestDeadLetters:
    def letter(self, dead_letters, stage):
        message = dead_letters.get(wait_interval_ms=10_000)
        assert message.format == "MQDEAD"
        header, data = unpack_dlh(message.data)
        assert (header.dest_q_name, header.dest_q_mgr_name) == (stage.initq, "QM1")
        return header, data

    def test_a_missing_program_puts_the_trigger_message_there_with_265(self, stage, dead_letters):
        q_name = stage.queue("/no/such/program", retry=0)
        stage.watch()
        stage.qm.put(q_name, b"one")
        header, data = self.letter(dead_letters, stage)
        assert (header.reason, header.format) == (265, FORMAT_TRIGGER)
        assert unpack_tm(data).q_name == q_name
        (run,) = stage.wait_for(q_name=q_name, state="failed")
        expected = "no program /no/such/program; its trigger message is on SYSTEM.DEAD.LETTER.QUEUE"
        assert (run["why"], run["pid"]) == (expected, 0)

    def test_a_file_the_kernel_will_not_execute_does_too(self, stage, dead_letters):
        job = stage.directory / "job"
        job.write_bytes(b"\x7fELF is not enough")
        job.chmod(0o755)
        q_name = stage.queue(job, retry=0)
        stage.watch()
        stage.qm.put(q_name, b"one")
        assert self.letter(dead_letters, stage)[0].reason == 265
        (run,) = stage.wait_for(q_name=q_name, state="failed")
        assert "Exec format error" in run["why"]

    def test_a_held_run_that_can_no_longer_start_does_too(self, stage, dead_letters):
        gate = stage.directory / "gate"
        job = stage.program(f"while [ ! -e {gate} ]; do sleep 0.02; done")
        q_name = stage.queue(job, instances=1, retry=0)
        stage.watch()
        stage.qm.put(q_name, b"one")
        stage.qm.put(q_name, b"two")
        stage.wait_for(q_name=q_name, state="held")
        job.unlink()
        gate.touch()
        header, data = self.letter(dead_letters, stage)
        assert (header.reason, unpack_tm(data).q_name) == (265, q_name)
        stage.wait_for(q_name=q_name, state="failed")

    def test_trigger_data_that_would_begin_an_option_does_too(self, stage, dead_letters):
        q_name = stage.queue("/bin/echo {trigdata}", trigger_data="--exec=reboot", retry=0)
        stage.watch()
        stage.qm.put(q_name, b"one")
        assert self.letter(dead_letters, stage)[0].reason == 265
        assert "may not begin an option" in stage.wait_for(q_name=q_name, state="failed")[0]["why"]

    def test_an_unknown_application_type_puts_it_there_with_267(self, stage, dead_letters):
        q_name = stage.queue("CICSTRAN", appl_type="cics")
        stage.watch()
        stage.qm.put(q_name, b"one")
        assert self.letter(dead_letters, stage)[0].reason == 267
        stage.wait_for(q_name=q_name, state="failed")

    def test_a_bad_trigger_message_puts_it_there_with_266_as_it_came(self, stage, dead_letters):
        stage.watch()
        stage.qm.put(stage.initq, b"what is this", format="MINE")
        header, data = self.letter(dead_letters, stage)
        assert (header.reason, header.format, data) == (266, "MINE", b"what is this")

    def test_the_monitor_goes_on_behind_one(self, stage, dead_letters):
        q_name = stage.queue(stage.program("true"))
        stage.watch()
        stage.qm.put(stage.initq, b"what is this")
        stage.qm.put(q_name, b"one")
        stage.wait_for(q_name=q_name, state="exited")


def test_without_a_dead_letter_queue_the_failed_run_tells_what_was_dropped(stage):
    q_name = stage.queue("/no/such/program", retry=0)
    stage.watch()
    stage.qm.put(q_name, b"one")
    (run,) = stage.wait_for(q_name=q_name, state="failed")
    assert "dropped: the queue manager names no dead-letter queue (DEADQ)" in run["why"]


def test_a_dead_letter_queue_that_refuses_does_not_stop_the_monitor(stage, dead_letters):
    stage.qm.call(Alter(object_type="QLOCAL", name="SYSTEM.DEAD.LETTER.QUEUE", attributes={"inhibit_put": "disabled"}))
    try:
        q_name = stage.queue("/no/such/program", retry=0)
        stage.watch()
        stage.qm.put(q_name, b"one")
        (run,) = stage.wait_for(q_name=q_name, state="failed")
        assert "the dead-letter queue refused it: puts are inhibited" in run["why"]
    finally:
        enabled = {"inhibit_put": "enabled"}
        stage.qm.call(Alter(object_type="QLOCAL", name="SYSTEM.DEAD.LETTER.QUEUE", attributes=enabled))


@pytest.mark.parametrize("by_alias", [False, True])
def test_a_triggered_dead_letter_queue_whose_own_program_is_missing_does_not_go_round_for_ever(stage, by_alias):
    dlq = name = stage.queue("/no/such/reader", name="DLQ", retry=0)
    if by_alias:
        name = f"{dlq}.ALIAS"
        define(stage.qm, name, "QALIAS", base_q_name=dlq)
    stage.qm.call(Alter(object_type="QMGR", name="QM1", attributes={"dead_letter_q_name": name}))
    try:
        q_name = stage.queue("/no/such/program", retry=0)
        stage.watch()
        stage.qm.put(q_name, b"one")
        stage.wait_for(q_name=q_name, state="failed")
        stage.wait_for(q_name=dlq, state="failed")
        stage.qm.put(q_name, b"two")
        stage.wait_for(2, q_name=q_name, state="failed")
        runs = stage.wait_for(2, q_name=dlq, state="failed")
        dropped = f"its trigger message was dropped: it is about {dlq}, the dead-letter queue itself"
        assert [run["why"] for run in runs] == [f"no program /no/such/reader; {dropped}"] * 2
        assert stage.depth(dlq) == 2
    finally:
        stage.qm.call(Alter(object_type="QMGR", name="QM1", attributes={"dead_letter_q_name": ""}))


def test_a_monitor_of_a_queue_that_does_not_exist_says_so(stage):
    end = stage.watch(initiation_q="NO.SUCH.QUEUE")
    with pytest.raises(trigmon.UnknownObjectName, match=r"NO\.SUCH\.QUEUE"):
        end()


def test_two_monitors_share_an_initiation_queue_and_start_each_run_once(stage):
    q_name = stage.queue(stage.program("true"), instances=50)
    stage.watch()
    stage.watch()
    for _ in range(20):
        stage.qm.put(q_name, b"one")
    ended = stage.wait_for(20, q_name=q_name, state="exited")
    assert len(ended) == 20
    assert {run["monitor"].rpartition(":")[2] for run in ended} <= {"1", "2"}


def test_gets_that_are_inhibited_for_a_while_only_delay_the_start(stage):
    q_name = stage.queue(stage.program("true"))
    stage.watch()
    trigger(stage, q_name=q_name, appl_id="/nothing")
    stage.wait_for(q_name=q_name)
    stage.qm.call(Alter(object_type="QLOCAL", name=stage.initq, attributes={"inhibit_get": "disabled"}))
    trigger(stage, q_name=q_name, process_name=f"{q_name}.P")
    time.sleep(0.7)
    assert not stage.runs(q_name=q_name, process_name=f"{q_name}.P")
    stage.qm.call(Alter(object_type="QLOCAL", name=stage.initq, attributes={"inhibit_get": "enabled"}))
    stage.wait_for(q_name=q_name, process_name=f"{q_name}.P", state="exited")

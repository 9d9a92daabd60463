"""Trigger messages of a queue manager elsewhere become runs here, by trigmon's definitions and rules."""

from __future__ import annotations

import itertools
import json
import os
import shlex
import sys

import pytest

from tests.bridge.bench import DRAINS, INITQ
from tests.daemons import Daemon, define
from tests.waiting import until
from trigmon.mq.calls import Alter, CancelRun, Display, Pause, Pauses, Resume, RetryRun
from trigmon.mq.descriptors import TriggerMessage, pack_tm


def test_a_trigger_message_from_elsewhere_starts_what_the_process_here_says(bench):
    one = bench()
    shown = one.home / "shown"
    program = one.program(f'env > {shown}.part; printf %s "$1" > {shown}.tmc; mv {shown}.part {shown}')
    one.process(appl_id=program, tmc_argument="yes", user_data="ours")
    one.queue(trigger_data="TRIGDATA of PROD")
    monitor = one.monitored()
    one.far.put("Q", b"work")
    (run,) = one.ended(1)
    assert (run["q_name"], run["state"], run["exit_status"], run["appl_id"]) == ("Q@PROD", "exited", 0, program)
    assert (run["bridge"], run["remote_q_mgr"], run["remote_initiation_q"]) == ("FAR", "PROD", INITQ)
    assert (run["trigger_data"], run["user_data"]) == ("TRIGDATA of PROD", "ours")
    assert run["remote_before"]["trigger_type"] == "every"
    assert run["remote_before"]["depth"] == run["remote_after"]["depth"] == 1
    assert run["remote_before"]["first"] == run["remote_after"]["first"] != ""
    variables = dict(line.split("=", 1) for line in shown.read_text().splitlines() if "=" in line)
    assert variables["MQSERVER"] == "APP.SVRCONN/TCP/localhost(1414)"
    assert (variables["TRIGMON_QMGR"], variables["TRIGMON_QNAME"]) == ("PROD", "Q")
    assert variables["TRIGMON_RUN"] == run["run_id"]
    tmc = (one.home / "shown.tmc").read_text()
    assert (tmc[:8], tmc[8:56].strip(), tmc[-48:].strip()) == ("TMC    2", "Q", "PROD")
    assert not (one.home / "EVIL").exists()
    listed = one.here.trigmon("runs", "list")
    assert "Q@PROD" in listed.stdout, listed
    one.stop(monitor)


def test_several_initiation_queues_of_a_bridge_are_served(bench):
    one = bench(initiation_queues=[INITQ, "OTHER.INITQ"])
    define(one.far, "OTHER.INITQ")
    one.process()
    one.queue("A")
    one.queue("B", initiation_q_name="OTHER.INITQ")
    one.monitored()
    until(lambda: len([line for line in one.log.read_text().splitlines() if "a bridge is served" in line]) == 2)
    one.far.put("A", b"")
    one.far.put("B", b"")
    runs = one.ended(2)
    assert {(run["q_name"], run["remote_initiation_q"]) for run in runs} == {
        ("A@PROD", INITQ),
        ("B@PROD", "OTHER.INITQ"),
    }


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a program as another user")
def test_a_process_with_runas_runs_as_that_user_for_a_queue_elsewhere(bench):
    one = bench()
    users = one.home / "users"
    users.write_text("nobody\n")
    one.variables["TRIGMON_MONITOR_RUN_AS_FILE"] = str(users)
    one.process(appl_id="/bin/sh -c 'test `id -un` = nobody'", run_as="nobody")
    one.queue()
    one.monitored()
    one.far.put("Q", b"")
    (run,) = one.ended(1)
    assert (run["state"], run["exit_status"], run["user"], run["bridge"]) == ("exited", 0, "nobody", "FAR"), run


def test_several_queue_managers_are_served_and_one_that_is_away_hinders_no_other(bench):
    one = bench()
    one.process()
    one.queue()
    one.more["TESTS"] = {"queue_manager": "TEST", "initiation_queues": [INITQ], "wait_s": 0.2}
    other = Daemon(one.home, "TEST")
    try:
        one.monitored()
        one.far.put("Q", b"")
        assert [run["q_name"] for run in one.ended(1)] == ["Q@PROD"]
        until(lambda: bridge_in_status(one)[1:] == ("served", "hindered"), 60)
        other.start()
        with other.connect() as qm:
            wanted = {"trigger_control": "on", "trigger_type": "every", "initiation_q_name": INITQ}
            define(qm, "P", "PROCESS", appl_id="/bin/false")
            define(qm, "Q", process_name="P", **wanted)
            qm.put("Q", b"")
        run = one.ended(2)[-1]
        assert (run["q_name"], run["bridge"], run["remote_q_mgr"]) == ("Q@TEST", "TESTS", "TEST")
        until(lambda: bridge_in_status(one)[1:] == ("served", "served"), 60)
    finally:
        other.end()


def test_what_the_message_says_is_started_only_where_the_bridge_allows_it(bench):
    one = bench(applicid_of_message="true")
    define(one.far, "THEIRS", "PROCESS", appl_id=one.noting())
    one.queue(process="THEIRS")
    one.monitored()
    one.far.put("Q", b"")
    (run,) = one.ended(1)
    assert (run["state"], run["exit_status"], run["process_name"]) == ("exited", 0, "")
    assert one.notes.read_text().split() == [run["run_id"], "Q", "PROD"]


@pytest.mark.parametrize(
    ("messages", "each"), [(1000, 100), pytest.param(10_000, 100, marks=pytest.mark.slow)], ids=["1000", "10000"]
)
def test_a_first_queue_elsewhere_is_drained_without_a_put(bench, messages, each):
    one = bench()
    program = one.home / "drains.py"
    program.write_text(DRAINS)
    one.process(appl_id=f"{shlex.quote(sys.executable)} {program} {each}")
    one.queue(trigger_type="first")
    with one.far.open("Q", "output") as queue:
        queue.put_many([b"%d" % number for number in range(messages)])
    one.monitored()
    until(lambda: one.depth("Q") == 0, 600)
    runs = one.ended(messages // each)
    started = [run for run in runs if run["state"] == "exited"]
    assert {run["exit_status"] for run in started} == {0}
    assert messages // each <= len(started) <= messages // each + 2
    spans = sorted((run["start_ms"], run["end_ms"]) for run in started)
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(spans)), "one at a time"


def test_a_failed_program_is_tried_again_and_the_breaker_holds_the_queue_elsewhere(bench):
    one = bench()
    one.process(appl_id=one.noting("exit 3"), retry=1, retry_wait_s=1)
    one.queue(trigger_type="first")
    one.monitored()
    one.far.put("Q", b"poison")
    runs = until(lambda: runs if len(runs := one.runs(state="exited")) == 2 else None, 120)
    assert [run["attempt"] for run in runs] == [1, 2]
    assert runs[1]["retries"] == runs[0]["run_id"]
    assert {run["remote_msg_id"] for run in runs} == {runs[0]["remote_msg_id"]}
    held = until(lambda: [p for p in pauses(one) if p["name"] == "Q@PROD"], 60)
    assert "removed no message" in held[0]["reason"]
    one.qm.call(Alter(object_type="PROCESS", name="P", attributes={"appl_id": one.program("exit 0", "mended")}))
    until(lambda: not pauses(one), 60)
    assert until(lambda: [run for run in one.runs(state="exited") if run["exit_status"] == 0], 60)


def pauses(one):
    return one.qm.call(Pauses()).rows


def test_a_person_pauses_and_resumes_a_queue_elsewhere_and_repeats_and_cancels_its_runs(bench):
    one = bench()
    one.process()
    one.queue()
    one.monitored()
    one.qm.call(Pause(what="queue", name="Q@PROD", reason="closed"))
    one.far.put("Q", b"")
    one.far.put("Q", b"")
    first, second = until(lambda: runs if len(runs := one.runs(state="held")) == 2 else None, 60)
    assert "closed" in first["why"]
    one.qm.call(CancelRun(run_id=second["run_id"], reason="not this one"))
    one.qm.call(Resume(what="queue", name="Q@PROD"))
    (run,) = until(lambda: one.runs(state="exited"), 60)
    assert run["run_id"] == first["run_id"]
    one.qm.call(RetryRun(run_id=run["run_id"]))
    again = until(lambda: runs if len(runs := one.runs(state="exited")) == 2 else None, 60)[-1]
    assert (again["repeats"], again["q_name"], again["exit_status"]) == (run["run_id"], "Q@PROD", 0)


def test_instances_hold_for_a_queue_elsewhere_and_every_message_has_its_run(bench):
    one = bench()
    gate = one.home / "gate"
    one.process(appl_id=one.noting(f"while [ ! -e {gate} ]; do sleep 0.05; done"), instances=2)
    one.queue()
    one.monitored()
    for _ in range(5):
        one.far.put("Q", b"")
    until(lambda: len(one.runs()) == 5 and len(one.runs(state="started")) == 2, 60)
    assert len(one.runs(state="held")) == 3
    gate.touch()
    one.judge(5)


def test_trigger_messages_of_a_first_queue_are_joined_while_one_waits(bench):
    one = bench()
    gate = one.home / "gate"
    one.process(appl_id=one.noting(f"while [ ! -e {gate} ]; do sleep 0.05; done"))
    one.queue(trigger_type="first")
    one.monitored()
    for _ in range(3):
        one.far.put(INITQ, pack_tm(TriggerMessage(q_name="Q", process_name="P")), format="MQTRIG")
    runs = until(lambda: runs if len(runs := one.runs()) == 3 else None, 60)
    until(lambda: [run["state"] for run in one.runs()] == ["started", "held", "joined"], 60)
    assert one.runs(state="joined")[0]["joins"] == runs[1]["run_id"]
    gate.touch()
    assert [run["state"] for run in one.ended(3)] == ["exited", "exited", "joined"]


def test_a_program_that_does_not_open_the_queue_elsewhere_in_time_is_ended(bench):
    one = bench()
    one.process(appl_id=one.program("sleep 600"), open_wait_s=1, retry=0)
    one.queue()
    one.monitored()
    one.far.put("Q", b"")
    (run,) = one.ended(1)
    assert "had not opened its queue in 1 s" in run["why"]


OPENS = """\
import pathlib
import sys
import time

import ibmmq as mq

qmgr = mq.QueueManager(None)
qmgr.connect_with_options("PROD", cno=mq.CNO())
queue = mq.Queue(qmgr, "READ", mq.CMQC.MQOO_INPUT_SHARED)
while not pathlib.Path(sys.argv[1]).exists():
    time.sleep(0.05)
"""


def test_openwait_looks_for_a_handle_of_the_programs_own(bench):
    one = bench()
    gate, program = one.home / "gate", one.home / "opens.py"
    program.write_text(OPENS)
    one.process("READS", appl_id=f"{shlex.quote(sys.executable)} {program} {gate}", open_wait_s=5)
    one.process("HANGS", appl_id=one.program("sleep 600"), open_wait_s=5, retry=0)
    one.queue("READ", process="READS")
    one.queue("HUNG", process="HANGS")
    one.monitored()
    one.far.put("READ", b"")
    until(lambda: readers(one, "READ") == 1, 60)
    with one.far.open("HUNG", "input_shared"):
        one.far.put("HUNG", b"")
        until(lambda: one.runs(q_name="HUNG@PROD", state="exited"), 60)
    assert "had not opened its queue in 5 s" in one.runs(q_name="HUNG@PROD")[0]["why"]
    # Its time was over before.
    assert [run["state"] for run in one.runs(q_name="READ@PROD")] == ["started"]
    gate.touch()
    assert one.ended(2)[0]["exit_status"] == 0


HOLDS = """\
import pathlib
import signal
import sys
import time

import ibmmq as mq

signal.signal(signal.SIGTERM, signal.SIG_IGN)
qmgr = mq.QueueManager(None)
qmgr.connect_with_options("PROD", cno=mq.CNO())
queue = mq.Queue(qmgr, "Q", mq.CMQC.MQOO_INPUT_SHARED)
queue.get(None, mq.MD(), mq.GMO(Options=mq.CMQC.MQGMO_SYNCPOINT))
pathlib.Path(sys.argv[1]).touch()
time.sleep(600)
"""


def test_what_a_process_of_the_program_has_in_flight_elsewhere_counts_as_left(bench):
    one = bench()
    ready, holds = one.home / "ready", one.home / "holds.py"
    holds.write_text(HOLDS)
    python = shlex.quote(sys.executable)
    text = f"[ -e {ready} ] && exit 0; {python} {holds} {ready} & while [ ! -e {ready} ]; do sleep 0.05; done; exit 3"
    one.process(appl_id=one.program(text), retry_wait_s=1)
    one.queue()
    one.monitored()
    one.far.put("Q", b"")
    first, again = one.ended(2)
    assert (first["exit_status"], first["remote_after"]["depth"], first["remote_after"]["readers"]) == (3, 1, 0)
    assert (again["retries"], again["exit_status"]) == (first["run_id"], 0)


@pytest.mark.slow
def test_the_time_to_open_a_queue_begins_again_while_its_queue_manager_is_away(bench):
    one = bench()
    one.process(appl_id=one.program("sleep 600"), open_wait_s=2, retry=0)
    one.queue()
    one.monitored()
    one.far.put("Q", b"", persistence="persistent")
    until(lambda: one.runs(state="started"), 60)
    one.there.stop()
    one.far.drop()
    until(lambda: "a queue elsewhere cannot be seen" in one.log.read_text(), 60)
    assert one.runs(state="started")
    one.there.start()
    one.far = one.there.connect()
    # MQ may fire again for the message that is left, when its queue manager is back.
    assert {"had not opened its queue in 2 s" in run["why"] for run in one.ended(1)} == {True}


def readers(one, name):
    return one.far.call(Display(object_type="QLOCAL", name=name)).rows[0]["open_input_count"]


def test_messages_of_a_unit_of_work_elsewhere_bring_no_further_try(bench):
    one = bench()
    gate = one.home / "gate"
    one.process(appl_id=one.noting(f"while [ ! -e {gate} ]; do sleep 0.05; done; exit 3"), retry=5, retry_wait_s=1)
    one.queue(trigger_type="first")
    one.monitored()
    one.far.put("Q", b"one")
    until(lambda: one.runs(state="started"), 60)
    with one.far.open("Q", "input_shared") as queue:
        assert queue.get().data == b"one"
    one.far.put("Q", b"two", syncpoint=True)
    gate.touch()
    (run,) = one.ended(1)
    assert (run["exit_status"], run["remote_after"]["depth"], run["remote_after"]["uncommitted"]) == (3, 1, 1)
    one.far.backout()


def bridge_in_status(one):
    """Returns the findings about bridges, and the state of the one there is."""
    status = json.loads(one.here.trigmon("--output", "json", "status").stdout)
    found = [(each["kind"], each["name"]) for each in status["attention"] if each["kind"] == "bridge"]
    return found, *(row["state"] for row in status["bridges"])


def test_a_queue_manager_elsewhere_that_stops_is_served_again_when_it_is_back(bench):
    one = bench()
    one.process()
    one.queue()
    monitor = one.monitored()
    one.far.put("Q", b"")
    one.ended(1)
    until(lambda: bridge_in_status(one) == ([], "served"))
    one.there.stop()
    one.far.drop()
    until(lambda: ([("bridge", f"{INITQ}@PROD")], "hindered") == bridge_in_status(one))
    one.there.start()
    one.far = one.there.connect()
    until(one.serves, 120)
    until(lambda: bridge_in_status(one) == ([], "served"))
    one.far.put("Q", b"")
    one.judge(2)
    one.here.kill()
    one.far.put("Q", b"")
    one.qm.drop()
    one.here.start()
    one.qm = one.here.connect()
    one.judge(3)
    one.stop(monitor)


def test_without_the_library_the_monitor_serves_its_own_queue_and_names_the_remedy(bench):
    one = bench()
    one.process()
    define(one.qm, "OWN", trigger_control="on", trigger_type="every", process_name="P", initiation_q_name=INITQ)
    monitor = one.monitor(library=False)
    until(lambda: "a bridge cannot be used" in one.log.read_text(), 60)
    assert "LD_LIBRARY_PATH" in one.log.read_text()
    one.qm.put("OWN", b"")
    (run,) = one.ended(1)
    assert (run["q_name"], run["exit_status"]) == ("OWN", 0)
    one.stop(monitor)


def test_a_password_that_is_not_there_is_named_and_no_secret_is_logged(bench):
    one = bench(user="app", password_secret="prod_password")
    secrets = one.home / "secrets"
    secrets.mkdir()
    one.here.settings["monitor.secrets_directory"] = str(secrets)
    one.process()
    one.queue()
    monitor = one.monitor()
    until(lambda: "a bridge cannot be used" in one.log.read_text(), 60)
    assert "password_secret: SECRETS(prod_password): there is no" in one.log.read_text()
    one.stop(monitor)
    password = os.urandom(8).hex()
    (secrets / "prod_password").write_text(f"{password}\n")
    (secrets / "prod_password").chmod(0o600)
    monitor = one.monitored()
    one.far.put("Q", b"")
    one.judge(1)
    assert password not in one.log.read_text()
    assert password not in str(one.runs())
    one.stop(monitor)

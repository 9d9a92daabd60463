"""The four silences that users met: each is the first finding of trigmon status, and of the overview."""

import sys

from tests.cli.conftest import run_cli
from tests.daemons import define
from tests.waiting import until
from trigmon.console.overview import read_overview
from trigmon.mq.calls import Alter, Display, Runs


def printed(machine, *words):
    """Returns what a command prints."""
    env = {key: value for key, value in machine.daemon.env.items() if key.startswith("TRIGMON_")}
    done = run_cli(*words, env=env)
    assert done.exit_code == 0, done.stderr
    return done.stdout


def first_finding(machine):
    """Waits until something needs attention. Returns the first line of the list of trigmon status.

    The very first line of all names it, too.
    """
    until(lambda: read_overview(machine.qm).attention, 120)
    first, _, finding = printed(machine, "status").splitlines()[:3]
    name, kind = finding.split()[:2]
    assert first == f"needs attention  1: {kind} {name}"
    return finding


def ended(machine, q_name):
    """Waits until a run for the queue has ended."""
    until(lambda: any(run.get("end_ms") or run["state"] == "failed" for run in runs(machine, q_name)), 120)


def runs(machine, q_name):
    return machine.qm.call(Runs(where={"q_name": q_name})).rows


def test_a_typo_in_appl_id(machine):
    define(machine.qm, "TYPO", "PROCESS", appl_type="unix", appl_id="pythn total.py", retry=0, breaker=0)
    machine.queue("ORDERS", "TYPO")
    machine.qm.put("ORDERS", b"one")
    line = first_finding(machine)
    assert line.split()[:2] == ["ORDERS", "could_not_start"]
    assert "1 message waits, and nobody reads: could not start: no program pythn on PATH" in line
    machine.qm.call(Alter(object_type="PROCESS", name="TYPO", attributes={"appl_id": f"{sys.executable} -c pass"}))
    with machine.qm.open("ORDERS", "input_shared") as queue:
        queue.get()
    assert read_overview(machine.qm).attention == []


def test_a_typo_in_appl_id_that_the_breaker_has_met(machine):
    define(machine.qm, "TYPO", "PROCESS", appl_type="unix", appl_id="pythn total.py", retry=0, breaker=1)
    machine.queue("ORDERS", "TYPO")
    machine.qm.put("ORDERS", b"one")
    line = first_finding(machine)
    assert line.split()[:2] == ["ORDERS", "held"]
    assert "no program pythn on PATH" in line


def test_an_every_queue_whose_run_failed(machine):
    machine.queue("EACH", "BAD", trigger_type="every")
    machine.qm.put("EACH", b"one")
    ended(machine, "EACH")
    line = first_finding(machine)
    assert line.split()[:2] == ["EACH", "failing"]
    assert "the last run failed: ended with status 1: ValueError: cannot parse b'bad'" in line
    (item,) = read_overview(machine.qm).attention
    assert item.last_line == "ValueError: cannot parse b'bad'"
    assert item.since_ms == runs(machine, "EACH")[0]["end_ms"]


def test_a_first_queue_that_is_silent_for_a_trigger_interval(machine):
    machine.qm.call(Alter(object_type="QMGR", name="", attributes={"trigger_interval": 999_999_999}))
    machine.queue("QUIET", "BAD")
    machine.qm.put("QUIET", b"one")
    ended(machine, "QUIET")
    machine.qm.put("QUIET", b"two")  # starts nothing for 11.6 days
    assert first_finding(machine).split()[:2] == ["QUIET", "failing"]
    assert "2 messages wait, and nobody reads" in first_finding(machine)


def test_a_job_that_ends_well_and_takes_nothing(machine):
    machine.qm.call(Alter(object_type="QMGR", name="", attributes={"trigger_interval": 999_999_999}))
    machine.queue("ORDERS", "IDLE")
    machine.qm.put("ORDERS", b"one")
    ended(machine, "ORDERS")
    line = first_finding(machine)
    assert line.split()[:2] == ["ORDERS", "took_none"]
    assert "1 message waits, and nobody reads: the last run ended with status 0" in line
    assert "without having opened the queue for input and took no message" in line
    assert line.rstrip().endswith("trigmon explain ORDERS; trigmon process start IDLE --queue ORDERS")
    explained = printed(machine, "explain", "ORDERS")
    for helps in ("trigmon.spark.drain", "trigmon process start IDLE --queue ORDERS", "TRIGTYPE=EVERY"):
        assert helps in explained
    machine.qm.call(Alter(object_type="PROCESS", name="IDLE", attributes={"appl_id": program(machine, "GOOD")}))
    printed(machine, "process", "start", "IDLE", "--queue", "ORDERS")
    until(lambda: not read_overview(machine.qm).attention, 120)
    assert printed(machine, "status").splitlines()[0] == "needs attention  nothing"


def program(machine, name):
    """Returns the command of one of PROGRAMS."""
    (row,) = machine.qm.call(Display(object_type="PROCESS", name=name)).rows
    return row["appl_id"]

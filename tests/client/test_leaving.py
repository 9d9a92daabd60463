"""A program that fails leaves its messages to the next, and its queue's trigger fires for them."""

import subprocess
import sys
import time

import pytest

from tests.daemons import define
from tests.spark.no_session import NO_SESSION
from trigmon.mq.enums import UnitOutcome
from trigmon.mq.errors import NoMsgAvailable
from trigmon.spark import batches


def once(queue):
    queue.get(syncpoint=True)


def several(queue):
    queue.get_many(2, syncpoint=True)


def in_a_loop(queue):
    for _ in queue.drain(batch=2):
        _ = 1 / 0


def under_the_cursor(queue):
    for _ in queue.browse():
        queue.get(msg_under_cursor=True, syncpoint=True)
        _ = 1 / 0


@pytest.fixture
def armed(qm, q_name):
    """A FIRST queue with two messages whose first trigger has fired, and the initiation queue it is read from."""
    initiation = f"{q_name}.INITQ"
    define(qm, initiation)
    define(qm, f"{q_name}.PROCESS", "PROCESS", appl_id="true")
    attributes = {"trigger_type": "first", "initiation_q_name": initiation, "process_name": f"{q_name}.PROCESS"}
    define(qm, f"{q_name}.FIRST", trigger_control="on", **attributes)
    with qm.open(initiation, "input_shared") as triggers:
        qm.put(f"{q_name}.FIRST", b"1")
        qm.put(f"{q_name}.FIRST", b"2")
        assert triggers.get().format == "MQTRIG"
        yield f"{q_name}.FIRST", triggers


def fires_again(triggers):
    return triggers.get(wait_interval_ms=2000).format == "MQTRIG"


@pytest.mark.parametrize("take", [once, several, in_a_loop, under_the_cursor])
def test_the_trigger_fires_again_behind_a_program_that_failed(armed, shared_daemon, take):
    name, triggers = armed
    with (
        pytest.raises(ZeroDivisionError),
        shared_daemon.connect() as failing,
        failing.open(name, "input_shared", "browse") as queue,
    ):
        take(queue)
        _ = 1 / 0
    assert fires_again(triggers)


def test_it_fires_where_only_the_queues_block_is_left_and_the_connection_goes_on(armed, shared_daemon):
    name, triggers = armed
    with shared_daemon.connect() as going_on:
        with pytest.raises(ZeroDivisionError), going_on.open(name, "input_shared") as queue:
            once(queue)
            _ = 1 / 0
        assert fires_again(triggers)
        assert going_on.unit == 2
        with going_on.open(name, "input_shared") as queue:
            assert [message.data for message in queue.drain()] == [b"1", b"2"]


def test_it_fires_behind_a_spark_job_that_failed(armed, shared_daemon):
    name, triggers = armed
    with pytest.raises(ZeroDivisionError), batches(NO_SESSION, name, qmgr=shared_daemon.address) as waiting:
        assert waiting.next().count
        _ = 1 / 0
    assert fires_again(triggers)


def test_it_fires_behind_a_trigmon_get_that_could_not_write(armed, shared_daemon):
    name, triggers = armed
    argv = [sys.executable, "-m", "trigmon", "get", name, "--all"]
    with open("/dev/full", "w") as full:  # noqa: PTH123 - a device that is always full (full(4))
        ended = subprocess.run(
            argv, env=shared_daemon.env, stdout=full, stderr=subprocess.PIPE, timeout=60, check=False
        )
    assert ended.returncode
    assert fires_again(triggers)


def test_a_block_left_without_a_unit_of_work_backs_nothing_out(qm, q_name):
    unit = qm.unit
    with pytest.raises(ZeroDivisionError), qm.open(q_name, "input_shared", "output") as queue:
        queue.put(b"stays")
        _ = 1 / 0
    assert qm.unit == unit
    assert qm.open(q_name, "input_shared").get().data == b"stays"


def test_a_lost_connections_unit_can_be_asked_for_by_its_old_id(qm, q_name, shared_daemon):
    lost = shared_daemon.connect()
    lost.put(q_name, b"one", syncpoint=True)
    lost.commit()
    lost.put(q_name, b"two", syncpoint=True)
    lost.drop()
    with shared_daemon.connect() as again:
        assert again.client_id != lost.client_id
        assert again.outcome(1, lost.client_id) is UnitOutcome.COMMITTED
        until = time.monotonic() + 5
        while (outcome := again.outcome(2, lost.client_id)) is UnitOutcome.OPEN and time.monotonic() < until:
            time.sleep(0.01)
        assert outcome is UnitOutcome.BACKED_OUT


def test_a_program_that_fails_once_is_started_again_for_the_messages_it_left(daemon, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        f"""
import pathlib, trigmon
first = not (seen := pathlib.Path({str(tmp_path / "seen")!r})).exists()
seen.touch()
with trigmon.connect() as qm, qm.open(trigmon.triggered().q_name, "input_shared") as queue:
    for message in queue.drain():
        assert not first
"""
    )
    one = daemon(with_monitor=True)
    with one.connect() as qm:
        define(qm, "PROGRAM", "PROCESS", appl_id=f"{sys.executable} {program}")
        attributes = {"trigger_type": "first", "initiation_q_name": "SYSTEM.DEFAULT.INITIATION.QUEUE"}
        define(qm, "WORK", trigger_control="on", process_name="PROGRAM", **attributes)
        with qm.open("WORK", "inquire") as work:
            qm.put("WORK", b"one")
            until = time.monotonic() + 30
            while work.inquire("current_q_depth")["current_q_depth"]:
                assert time.monotonic() < until, one.log.read_text()
                time.sleep(0.1)


def test_the_end_of_the_queue_is_no_failure_and_what_was_taken_can_be_committed(qm, q_name):
    define(qm, f"{q_name}.ENDS")
    qm.put(f"{q_name}.ENDS", b"1")
    with pytest.raises(NoMsgAvailable), qm.open(f"{q_name}.ENDS", "input_shared") as queue:
        while True:
            queue.get(syncpoint=True)
    unit = qm.unit
    qm.commit()
    assert qm.outcome(unit) is UnitOutcome.COMMITTED

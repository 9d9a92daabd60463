"""Units of work, the two ways to leave, and who may use a connection."""

import os
import threading

import pytest

import trigmon
from tests.daemons import define
from trigmon.mq.calls import Backout, Close, Commit, Open, Ping, RecordRun, Runs
from trigmon.mq.enums import OpenOption, UnitOutcome
from trigmon.mq.replies import Done


def depth(qm, name):
    with qm.open(name, "inquire") as queue:
        return queue.inquire("current_q_depth")["current_q_depth"]


def test_leaving_cleanly_commits(qm, q_name, shared_daemon):
    with shared_daemon.connect() as other:
        other.put(q_name, b"one", syncpoint=True)
    assert depth(qm, q_name) == 1
    assert not other.alive


def test_an_exception_backs_out(qm, q_name, shared_daemon):
    with pytest.raises(ZeroDivisionError), shared_daemon.connect() as other:
        other.put(q_name, b"one", syncpoint=True)
        _ = 1 / 0
    assert depth(qm, q_name) == 0
    assert not other.alive
    assert qm.outcome(1, other.client_id) is UnitOutcome.BACKED_OUT


def test_a_link_that_just_ends_backs_out(qm, q_name, shared_daemon):
    other = shared_daemon.connect()
    other.put(q_name, b"one", syncpoint=True)
    other.drop()
    with qm.open(q_name, "input_shared") as queue, pytest.raises(trigmon.NoMsgAvailable):
        queue.get(wait_interval_ms=200)


def test_units_of_work_are_numbered_from_1_and_end_with_commit_and_backout(qm, q_name):
    assert qm.unit == 1
    qm.put(q_name, b"one", syncpoint=True)
    assert qm.outcome(1) is UnitOutcome.OPEN
    qm.commit()
    assert (qm.unit, qm.outcome(1)) == (2, UnitOutcome.COMMITTED)
    qm.put(q_name, b"two", syncpoint=True)
    qm.backout()
    assert (qm.unit, qm.outcome(2)) == (3, UnitOutcome.BACKED_OUT)
    assert depth(qm, q_name) == 1
    assert qm.outcome(1, "somebody nobody knows") is UnitOutcome.UNKNOWN


def test_a_call_outside_syncpoint_belongs_to_no_unit(qm, q_name):
    qm.put(q_name, b"one")
    qm.backout()
    assert depth(qm, q_name) == 1


def test_a_unit_ended_by_a_call_of_ones_own_is_counted_too(qm):
    qm.call(Commit(unit=1))
    qm.call(Backout(unit=2))
    qm.call(RecordRun(run_id="counted", record={"state": "due"}, unit=3))
    assert qm.unit == 4
    qm.call(RecordRun(run_id="not counted", record={"state": "due"}))
    assert qm.unit == 4
    assert len(qm.call(Runs(where={"state": "due"})).rows) == 2


def test_a_unit_that_has_ended_cannot_be_ended_again(qm):
    qm.commit()
    with pytest.raises(trigmon.UnitOfWorkNotStarted):
        qm.call(Commit(unit=1))
    assert qm.unit == 2


def test_a_new_connection_may_ask_what_became_of_anothers_unit(qm, q_name, shared_daemon):
    with shared_daemon.connect() as other:
        other.put(q_name, b"one", syncpoint=True)
        other.commit()
    assert qm.outcome(1, other.client_id) is UnitOutcome.COMMITTED


def test_any_call_may_be_made_and_a_refusal_raises_its_reason(qm):
    assert qm.call(Ping()) == Done()
    with pytest.raises(trigmon.UnknownObjectName, match="NOWHERE") as caught:
        qm.call(Open(object_name="NOWHERE", options=int(OpenOption.OUTPUT)))
    assert (caught.value.reason, caught.value.comp_code, caught.value.about) == (2085, 2, "NOWHERE")


def test_an_alias_is_opened_by_its_name_and_known_by_its_queues(qm, q_name):
    define(qm, f"{q_name}.ALIAS", "QALIAS", base_q_name=q_name)
    with qm.open(f"{q_name}.ALIAS", "output") as opened:
        assert (opened.name, opened.q_name) == (f"{q_name}.ALIAS", q_name)


def test_the_queue_managers_own_attributes_are_inquired_through_a_handle(qm):
    with qm.open("", "inquire", object_type="qmgr") as opened:
        assert opened.inquire("trigger_interval") == {"trigger_interval": 999_999_999}


def test_many_calls_on_their_way_are_answered_in_order_and_the_first_refusal_is_raised(qm):
    assert qm.pipeline((Ping() for _ in range(20)), window=4) == [Done()] * 20
    with pytest.raises(trigmon.HobjError, match="handle 4711"):
        qm.pipeline([Ping(), Close(handle=4711), Close(handle=4712), Ping()])
    assert qm.call(Ping()) == Done()


def test_an_exception_among_the_calls_leaves_no_reply_behind(qm):
    def calls():
        yield Ping()
        yield Ping()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        qm.pipeline(calls())
    assert qm.call(Ping()) == Done()


def test_disconnecting_twice_is_disconnecting_once(shared_daemon):
    other = shared_daemon.connect()
    other.disconnect()
    other.disconnect()
    with pytest.raises(trigmon.HconnError, match="the connection to QM1 has ended"):
        other.commit()


def test_another_thread_is_refused_and_harms_nothing(qm):
    caught = []

    def use():
        try:
            qm.commit()
        except trigmon.MQError as error:
            caught.append(error)

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert [int(error.reason) for error in caught] == [2219]
    assert qm.unit == 1
    qm.commit()


def test_a_forked_child_is_refused_and_harms_nothing(qm):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            qm.commit()
        except trigmon.HconnError as error:
            os.write(writing, str(error).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    with os.fdopen(reading) as said:
        assert "connect again after a fork" in said.read()
    qm.commit()


def test_a_verdict_prints_as_text(qm, q_name):
    said = str(qm.explain(q_name, priority=5))
    first, _, *conditions = said.splitlines()
    assert first == (f"A put on {q_name} with priority 5 would NOT write a trigger message: 6, 7, 8 and 9 do not hold.")
    assert any(line.startswith("   9  NO") for line in conditions)
    assert f"remedy: ALTER QLOCAL({q_name}) TRIGGER" in said

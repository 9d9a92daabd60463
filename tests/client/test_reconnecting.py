"""A connection that was lost is made again: what a program then sees of its handles, waits and units of work."""

import threading
import time

import pytest

import trigmon
from tests.daemons import define
from tests.waiting import until
from trigmon.client.reconnect import Fate, fate_of, on_next_link, reconnect_s
from trigmon.mq.calls import Commit, Disconnect, Get, GetMany, Inquire, Ping, Put, PutMany, RecordRun, Set
from trigmon.mq.enums import GetOption, PutOption

Q = "RECONNECT.Q"
HOWS = ("stop", "kill")


@pytest.fixture
def one(daemon):
    made = daemon()
    with made.connect() as qm:
        define(qm, Q, max_q_depth=99_999, def_persistence="persistent")
    return made


def restart(one, how):
    getattr(one, how)()
    one.start()


def again(one, how, pause_s=0.3):
    """Restarts it in a while, in another thread, which is returned."""

    def later():
        time.sleep(pause_s)
        restart(one, how)

    thread = threading.Thread(target=later)
    thread.start()
    return thread


@pytest.fixture
def qm(one):
    connection = one.connect(reconnect_s=120)
    yield connection
    connection.drop()


def bodies(one):
    with one.connect() as other, other.open(Q, "browse") as queue:
        return [message.data for message in queue.browse()]


@pytest.mark.parametrize("how", HOWS)
def test_handles_and_calls_go_on_after_a_restart(one, qm, how):
    queue = qm.open(Q, "input_shared", "output", "inquire")
    queue.put("before")
    for _ in range(2):
        restart(one, how)
        assert queue.inquire("current_q_depth") == {"current_q_depth": 1}
    assert queue.get().data == b"before"
    assert qm.alive
    queue.close()
    restart(one, how)
    with qm.open(Q, "output") as other:
        other.put("behind")
    assert bodies(one) == [b"behind"]


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("interval_ms", [-1, 600_000])
def test_a_wait_goes_on_over_a_restart(one, qm, how, interval_ms):
    queue = qm.open(Q, "input_shared")
    restarting = again(one, how)

    def put():
        restarting.join()
        with one.connect() as other:
            other.put(Q, "came")

    putting = threading.Thread(target=put)
    putting.start()
    assert queue.get(wait_interval_ms=interval_ms).data == b"came"
    putting.join()


def test_a_wait_has_no_more_than_its_interval_over_a_restart(one, qm):
    queue = qm.open(Q, "input_shared")
    restarting = again(one, "stop")
    began = time.monotonic()
    with pytest.raises(trigmon.NoMsgAvailable):
        queue.get(wait_interval_ms=1500)
    assert time.monotonic() - began >= 1.4
    restarting.join()


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("next_call", ["put", "get", "commit"])
def test_a_unit_of_work_in_flight_is_backed_out_and_its_calls_say_so_until_it_has_ended(one, qm, how, next_call):
    queue = qm.open(Q, "input_shared", "output")
    queue.put("kept")
    queue.get(syncpoint=True)
    queue.put("in the unit", syncpoint=True)
    restart(one, how)
    calls = {"put": lambda: queue.put("x", syncpoint=True), "get": lambda: queue.get(syncpoint=True)}
    calls["commit"] = qm.commit
    with pytest.raises(trigmon.BackedOut):
        calls[next_call]()
    if next_call != "commit":
        with pytest.raises(trigmon.BackedOut):
            queue.put("too", syncpoint=True)
        queue.put("outside", syncpoint=False)
        with pytest.raises(trigmon.BackedOut):
            qm.commit()
    queue.put("anew", syncpoint=True)
    qm.commit()
    assert b"in the unit" not in bodies(one)
    assert set(bodies(one)) >= {b"kept", b"anew"}


@pytest.mark.parametrize("how", HOWS)
def test_a_backout_ends_a_unit_that_was_lost(one, qm, how):
    queue = qm.open(Q, "output")
    queue.put("lost", syncpoint=True)
    restart(one, how)
    qm.backout()
    queue.put("kept", syncpoint=True)
    restart(one, how)
    with pytest.raises(trigmon.BackedOut):
        queue.put("x", syncpoint=True)
    qm.backout()
    queue.put("kept", syncpoint=True)
    qm.commit()
    assert bodies(one) == [b"kept"]


@pytest.mark.parametrize("how", HOWS)
def test_what_begins_a_unit_is_sent_again(one, qm, how):
    queue = qm.open(Q, "input_shared", "output")
    restart(one, how)
    queue.put("a", syncpoint=True)
    qm.commit()
    restart(one, how)
    assert queue.get(syncpoint=True).data == b"a"
    qm.commit()
    assert bodies(one) == []


@pytest.mark.parametrize("how", HOWS)
def test_a_block_that_ends_with_a_lost_unit_does_not_end_as_if_it_had_committed(one, how):
    with pytest.raises(trigmon.BackedOut), one.connect(reconnect_s=60) as qm:
        qm.put(Q, "lost", syncpoint=True)
        restart(one, how)
    assert bodies(one) == []


@pytest.mark.parametrize("how", HOWS)
def test_a_drain_goes_on_and_its_batch_comes_once_more(one, qm, how):
    with one.connect() as other:
        other.put_many(Q, [f"{number}" for number in range(30)])
    seen = []
    with qm.open(Q, "input_shared") as queue:
        for message in queue.drain(10):
            if len(seen) == 15:
                restart(one, how)
            seen.append(int(message.data))
    assert seen[:20] == list(range(20))
    assert sorted(set(seen)) == list(range(30))
    assert seen[-10:] == list(range(20, 30))
    assert bodies(one) == []


def test_many_puts_of_a_unit_that_are_on_their_way_raise_backed_out(one, qm):
    queue = qm.open(Q, "output")

    def bodies_to_put():
        for number in range(5000):
            if number == 3000:
                restart(one, "kill")
            yield f"{number}"

    with pytest.raises(trigmon.BackedOut):
        queue.put_many(bodies_to_put(), syncpoint=True)
    qm.backout()
    queue.put_many(["again"], syncpoint=True)
    qm.commit()
    assert bodies(one) == [b"again"]


def test_a_put_outside_a_unit_is_repeated_behind_an_orderly_stop_and_in_doubt_behind_a_kill(one, qm):
    queue = qm.open(Q, "output")
    restart(one, "stop")
    queue.put("once")
    assert bodies(one) == [b"once"]
    restart(one, "kill")
    with pytest.raises(trigmon.ConnectionBroken, match="what became of this call is not known"):
        queue.put("in doubt")
    queue.put("twice")
    assert bodies(one) == [b"once", b"twice"]


def test_a_browse_does_not_go_on_at_another_place(one, qm):
    with one.connect() as other:
        other.put_many(Q, ["a", "b"])
    with qm.open(Q, "browse") as queue:
        browse = queue.browse()
        assert next(browse).data == b"a"
        restart(one, "stop")
        with pytest.raises(trigmon.ConnectionBroken):
            next(browse)
        assert [message.data for message in queue.browse()] == [b"a", b"b"]


def test_a_temporary_dynamic_queue_is_not_replaced_by_another(one, qm):
    with one.connect() as other:
        define(other, "MODEL", "QMODEL")
    queue = qm.open("MODEL", "input_shared", dynamic_q_name="REPLY.*")
    restart(one, "stop")
    with pytest.raises(trigmon.ConnectionBroken, match="is gone with its connection"):
        queue.get()


def test_one_that_does_not_come_back_in_time_is_lost(one):
    qm = one.connect(reconnect_s=0.3)
    one.stop()
    with pytest.raises(trigmon.ConnectionBroken, match="nothing answers"):
        qm.call(Ping())
    one.start()


def test_a_first_connection_is_tried_as_long(one):
    one.stop()
    restarting = threading.Timer(0.5, one.start)
    restarting.start()
    with one.connect(reconnect_s=120) as qm:
        assert qm.call(Ping())
    restarting.join()


def test_a_program_that_a_monitor_started_connects_again_without_being_asked_to(one, monkeypatch):
    monkeypatch.setenv("TRIGMON_RUN", "00000000000000aa")
    with trigmon.connect(one.address) as qm:
        restart(one, "stop")
        assert qm.call(Ping())
    monkeypatch.setenv("TRIGMON_RECONNECT", "0")
    qm = trigmon.connect(one.address)
    restart(one, "stop")
    with pytest.raises(trigmon.MQError):
        qm.call(Ping())
    qm.drop()


def test_commits_on_their_way_while_it_is_killed_have_one_outcome(one):
    """Each message is committed once, however often the queue manager is killed in the middle of a commit."""
    done = threading.Event()
    committed = []

    def commit():
        with one.connect(reconnect_s=120) as qm, qm.open(Q, "output") as queue:
            number = 0
            while not done.is_set():
                queue.put(f"{number}", syncpoint=True)
                try:
                    qm.commit()
                except trigmon.BackedOut:
                    continue
                committed.append(b"%d" % number)
                number += 1

    worker = threading.Thread(target=commit)
    worker.start()
    for _ in range(5):
        count = len(committed)
        until(lambda count=count: len(committed) > count + 20)
        restart(one, "kill")
    count = len(committed)
    until(lambda: len(committed) > count + 20)
    done.set()
    worker.join()
    assert bodies(one) == committed


# -- the rules --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "had_unit", "is_undone", "fate"),
    [
        (Commit(unit=3), True, False, Fate.ASKED),
        (Commit(unit=3), True, True, Fate.BACKED_OUT),
        (Commit(unit=3), False, False, Fate.REPEATED),
        (Disconnect(unit=3), True, False, Fate.ASKED),
        (Put(handle=1, unit=3), True, False, Fate.BACKED_OUT),
        (Put(handle=1, unit=3), False, False, Fate.REPEATED),
        (Put(handle=1), True, False, Fate.UNKNOWN),
        (Put(handle=1), False, True, Fate.REPEATED),
        (Put(handle=1, options=int(PutOption.LOGICAL_ORDER)), False, True, Fate.UNKNOWN),
        (PutMany(bodies=[b""], handle=1), False, False, Fate.UNKNOWN),
        (Set(handle=1, attributes={}), False, False, Fate.UNKNOWN),
        (Set(handle=1, attributes={}), False, True, Fate.REPEATED),
        (Get(handle=1), False, False, Fate.REPEATED),
        (Get(handle=1, options=int(GetOption.BROWSE_FIRST)), True, False, Fate.REPEATED),
        (Get(handle=1, options=int(GetOption.BROWSE_NEXT)), False, True, Fate.UNKNOWN),
        (GetMany(handle=1, count=5, unit=3), True, False, Fate.BACKED_OUT),
        (Inquire(handle=1, names=[]), True, False, Fate.REPEATED),
        (RecordRun(run_id="a", record={}, unit=3), True, False, Fate.UNKNOWN),
    ],
)
def test_the_fate_of_a_call(call, had_unit, is_undone, fate):
    assert fate_of(call, had_unit=had_unit, is_undone=is_undone) is fate


def test_what_is_left_of_a_wait_is_never_below_nothing():
    get = Get(handle=1, wait_interval_ms=1000, unit=7)
    assert on_next_link(get, 1, 0.4) == Get(handle=1, wait_interval_ms=600, unit=1)
    assert on_next_link(get, 1, 4.0).wait_interval_ms == 0
    assert on_next_link(Get(handle=1, wait_interval_ms=-1), 1, 4.0).wait_interval_ms == -1


@pytest.mark.parametrize(("text", "run", "longest_s"), [("", "", 0), ("", "r", 60), ("5", "", 5), ("0", "r", 0)])
def test_how_long_it_is_tried(monkeypatch, text, run, longest_s):
    monkeypatch.setenv("TRIGMON_RECONNECT", text)
    assert reconnect_s(None, run) == longest_s
    assert reconnect_s(7, run) == 7


@pytest.mark.parametrize("text", ["soon", "-1", "inf", "nan"])
def test_what_is_no_number_of_seconds_is_refused(monkeypatch, text):
    monkeypatch.setenv("TRIGMON_RECONNECT", text)
    with pytest.raises(ValueError, match="it is a number of seconds"):
        reconnect_s(None, "")

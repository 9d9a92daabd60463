"""The overview that consoles show: what it holds, and with how few calls it is read."""

import msgspec

from tests.daemons import define
from tests.waiting import until
from trigmon.console.overview import LATE_MS, Memory, Overview, read_overview
from trigmon.mq.calls import Pause, QueueStatus, RunHistory
from trigmon.rules.runs.run_history import HOUR_MS, last_24_hours_ms


def row(overview, name):
    """Returns the row of a queue."""
    (found,) = [each for each in overview.queues if each.name == name]
    return found


def test_it_shows_queues_with_their_traffic_and_runs_and_what_needs_attention(machine):
    machine.queue("ORDERS", "GOOD")
    machine.queue("BROKEN", "BAD")
    machine.queue("IDLE")
    memory = Memory()
    first = read_overview(machine.qm, memory)
    assert (first.q_mgr_name, first.monitors, first.messages) == ("QM1", 1, 0)
    assert row(first, "ORDERS").puts_a_minute is None
    machine.qm.put("ORDERS", b"one")
    machine.qm.put("BROKEN", b"two")
    machine.qm.put("IDLE", b"three")
    seen = until(lambda: (now := read_overview(machine.qm, memory)).runs_ok and now.runs_failed and now)
    assert (seen.runs_ok, seen.runs_failed, seen.messages) == (1, 1, 2)
    orders, broken, idle = (row(seen, name) for name in ("ORDERS", "BROKEN", "IDLE"))
    assert (orders.depth, orders.ok, orders.failed, orders.last_outcome) == (0, 1, 0, "ok")
    assert (broken.depth, broken.ok, broken.failed, broken.last_outcome) == (1, 0, 1, "failed")
    assert (idle.depth, idle.last_run_ms, idle.last_outcome) == (1, 0, "")
    assert orders.puts_a_minute > 0 and orders.gets_a_minute > 0 and idle.gets_a_minute == 0
    assert (orders.trigger_type, orders.trigger_control, orders.process_name) == ("first", "on", "GOOD")
    # The time is the first thing that is read: a run may end while the rest is.
    assert seen.started_ms <= orders.last_run_ms <= read_overview(machine.qm).now_ms
    assert seen.oldest_ms == min(broken.oldest_ms, idle.oldest_ms) > 0
    assert "BROKEN" in [item.name for item in seen.attention]


def test_a_run_with_a_program_is_shown_with_what_it_has_taken(machine):
    machine.queue("EVENTS", "SLOW")
    machine.qm.put_many("EVENTS", [b"m"] * 3)
    seen = until(lambda: (now := read_overview(machine.qm)).running and now.running[0].taken and now)
    (run,) = seen.running
    assert (run.process_name, run.q_name, run.taken, run.left) == ("SLOW", "EVENTS", 1, 2)
    assert (seen.runs_now, row(seen, "EVENTS").running, row(seen, "EVENTS").readers) == (1, 1, 1)
    assert run.since_ms <= seen.now_ms


def test_it_is_json(machine):
    machine.queue("Q")
    machine.qm.call(Pause(what="queue", name="Q", reason="a release"))
    seen = read_overview(machine.qm)
    assert "a release" in row(seen, "Q").paused
    assert msgspec.json.decode(msgspec.json.encode(seen), type=Overview) == seen


def test_it_takes_a_call_for_each_256_queues_and_none_for_a_queue(shared_daemon):
    with shared_daemon.connect() as qm:
        for number in range(300):
            define(qm, f"Q.{number}")
        calls = []
        ask = qm._exchange
        qm._exchange = lambda call, **more: calls.append(type(call)) or ask(call, **more)
        send = qm._send_ahead
        qm._send_ahead = lambda call, **more: calls.append(type(call)) or send(call, **more)
        seen = read_overview(qm)
        assert len(seen.queues) == 300
        assert (calls.count(QueueStatus), calls.count(RunHistory), len(calls)) == (2, 1, 8)


# -- what a console keeps from reading to reading -------------------------------------------------------------


def traffic(puts, gets=0):
    return [{"name": "Q", "puts": puts, "gets": gets}]


def test_a_rate_is_what_came_within_about_a_minute():
    memory = Memory()
    assert memory.rates(0, traffic(100)) == {}
    assert memory.rates(30_000, traffic(110, 5)) == {"Q": (20.0, 10.0)}
    assert memory.rates(60_000, traffic(120, 5)) == {"Q": (20.0, 5.0)}
    assert memory.rates(90_000, traffic(120, 5)) == {"Q": (10.0, 0.0)}
    assert memory.rates(300_000, traffic(120, 5))["Q"] == (0.0, 0.0)


def test_counters_that_begin_anew_are_no_negative_rate():
    memory = Memory()
    memory.rates(0, traffic(100, 100))
    assert memory.rates(60_000, traffic(6, 3)) == {"Q": (6.0, 3.0)}


def test_two_readings_at_one_moment_divide_by_nothing():
    memory = Memory()
    memory.rates(5, traffic(1))
    assert memory.rates(5, traffic(2)) == {}


def counted(hour, runs, outcome="ok"):
    at = hour * HOUR_MS
    return {"since_ms": at, "q_name": "Q", "outcome": outcome, "runs": runs, "last_ms": at + 1}


def test_hours_that_are_over_are_counted_once_and_leave_after_a_day():
    memory, now = Memory(), 100 * HOUR_MS + LATE_MS + 1
    assert memory.counted_from(now) == last_24_hours_ms(now) == 77 * HOUR_MS
    memory.count([counted(77, 1), counted(99, 2, "failed"), counted(100, 4)])
    assert (memory.runs()["Q"].ok, memory.runs()["Q"].failed) == (5, 2)
    assert memory.counted_from(now + 1) == 100 * HOUR_MS
    assert (memory.runs()["Q"].ok, memory.runs()["Q"].last_outcome) == (1, "failed")
    memory.count([counted(100, 5)])
    assert (memory.runs()["Q"].ok, memory.runs()["Q"].last_ms) == (6, 100 * HOUR_MS + 1)
    memory.counted_from(now + HOUR_MS)
    assert memory.runs()["Q"].ok == 0


def test_an_end_that_is_recorded_late_is_counted():
    memory, now = Memory(), 100 * HOUR_MS + 1
    memory.counted_from(now)
    assert memory.counted_from(now + LATE_MS) == 99 * HOUR_MS


def test_a_joined_run_is_not_the_last_one_and_a_cancelled_one_is():
    memory = Memory()
    memory.count([counted(5, 1, "failed"), counted(6, 1, "cancelled"), counted(7, 9, "joined")])
    assert (memory.runs()["Q"].last_outcome, memory.runs()["Q"].failed) == ("cancelled", 1)

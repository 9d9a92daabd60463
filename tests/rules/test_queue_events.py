"""Queue events as MQ has them: depth high, low and full, and the service interval."""

import pytest

from tests.rules.launching_ledger import SYNCPOINT
from tests.rules.told_events import Told
from trigmon.mq.calls import Commit, Move, Put, ResetQueueStatistics
from trigmon.mq.event_kinds import FORMAT_EVENT, PERFORMANCE_EVENT_QUEUE
from trigmon.mq.reasons import Reason
from trigmon.pcf.performance_event import (
    BASE_OBJECT_NAME,
    HIGH_Q_DEPTH,
    MSG_DEQ_COUNT,
    MSG_ENQ_COUNT,
    TIME_SINCE_RESET,
)


@pytest.fixture
def deep(tmp_path):
    """A queue of ten messages at most, with MQ's events and ours."""
    made = Told("memory", tmp_path, trigmon_event="enabled", performance_event="enabled")
    made.define("DEEP", max_q_depth=10, q_depth_high_event="enabled")
    yield made
    made.end()


def put(told, count=1):
    return [told.do(Put(q_name="DEEP", data=b"x")) for _ in range(count)]


def test_the_limit_of_an_event_is_the_depth_at_which_it_comes(deep):
    deep.define("SMALL", max_q_depth=3, q_depth_high_event="enabled", q_depth_high_limit=80, q_depth_low_limit=50)
    for _ in range(3):
        deep.do(Put(q_name="SMALL", data=b"x"))
    deep.get("SMALL", 2)
    assert [(each["event"], each["depth"], each["limit"]) for each in deep.events()] == [
        ("queue_depth_high", 3, 3),
        ("queue_depth_low", 1, 1),
    ]


def test_high_is_reported_at_its_limit_once_and_enables_low_which_enables_it_again(deep):
    put(deep, 7)
    assert deep.events() == []
    put(deep)
    (high,) = deep.events()
    assert (high["event"], high["depth"], high["limit"], high["max_depth"]) == ("queue_depth_high", 8, 8, 10)
    put(deep)
    deep.get("DEEP", 6)
    assert deep.events() == []
    deep.get("DEEP")
    (low,) = deep.events()
    assert (low["event"], low["depth"], low["limit"]) == ("queue_depth_low", 2, 2)
    deep.get("DEEP", 2)
    put(deep, 8)
    assert deep.names() == ["queue_depth_high"]


def test_full_is_reported_once_until_low_or_high_enables_it_again(deep):
    replies = put(deep, 12)
    assert [reply.reason for reply in replies[10:]] == [Reason.Q_FULL] * 2
    assert deep.names() == ["queue_depth_high", "queue_full"]
    deep.get("DEEP", 8)
    assert deep.names() == ["queue_depth_low"]
    put(deep, 9)
    assert deep.names() == ["queue_depth_high", "queue_full"]


def test_a_put_in_a_unit_of_work_counts_at_once(deep):
    for _ in range(8):
        deep.did(Put(q_name="DEEP", data=b"x", options=SYNCPOINT, unit=1))
    assert deep.names() == ["queue_depth_high"]
    deep.did(Put(q_name="DEEP", data=b"x", options=SYNCPOINT, unit=1))
    deep.did(Put(q_name="DEEP", data=b"x", options=SYNCPOINT, unit=1))
    refused = deep.do(Put(q_name="DEEP", data=b"x", options=SYNCPOINT, unit=1))
    assert refused.reason == Reason.Q_FULL
    assert deep.names() == ["queue_full"]
    deep.did(Commit(unit=1))
    assert deep.queue_depth("DEEP") == 10


def test_mqs_event_is_pcf_with_what_went_through_the_queue_since_the_last(deep):
    deep.clock.advance(1500)
    put(deep, 8)
    deep.clock.advance(7000)
    deep.get("DEEP", 6)
    high, low = deep.pcf()
    assert (high.reason, low.reason) == (Reason.Q_DEPTH_HIGH, Reason.Q_DEPTH_LOW)
    values = dict(high.parameters)
    assert values[BASE_OBJECT_NAME].strip() == "DEEP"
    assert [values[s] for s in (TIME_SINCE_RESET, HIGH_Q_DEPTH, MSG_ENQ_COUNT, MSG_DEQ_COUNT)] == [0, 8, 8, 0]
    values = dict(low.parameters)
    assert [values[s] for s in (TIME_SINCE_RESET, HIGH_Q_DEPTH, MSG_ENQ_COUNT, MSG_DEQ_COUNT)] == [7, 8, 0, 6]


def test_reset_qstats_counts_an_events_figures_anew_and_the_service_timer_goes_on(deep):
    deep.alter("QLOCAL", "DEEP", q_service_interval=5000, q_service_interval_event="high")
    put(deep, 6)
    deep.get("DEEP", 3)
    deep.clock.advance(4000)
    deep.did(ResetQueueStatistics(q_name="DE*"), "operator")
    deep.clock.advance(2000)
    put(deep)
    (high,) = deep.pcf()
    assert high.reason == Reason.Q_SERVICE_INTERVAL_HIGH  # 6 s after the get
    values = dict(high.parameters)
    assert [values[s] for s in (TIME_SINCE_RESET, HIGH_Q_DEPTH, MSG_ENQ_COUNT, MSG_DEQ_COUNT)] == [2, 4, 1, 0]


def test_a_low_limit_above_the_high_one_is_taken_as_in_mq_and_each_event_enables_the_other(deep):
    deep.alter("QLOCAL", "DEEP", q_depth_high_limit=20, q_depth_low_limit=80)
    put(deep, 3)
    assert deep.names() == ["queue_depth_high"]
    deep.get("DEEP", 2)
    assert deep.names() == ["queue_depth_low"]
    put(deep)
    assert deep.names() == ["queue_depth_high"]


def test_mqs_event_message_says_who_put_it_and_what_it_is(deep):
    put(deep, 8)
    (message,) = deep.taken(PERFORMANCE_EVENT_QUEUE)
    descriptor = message.descriptor
    assert (descriptor.format, descriptor.put_appl_name, descriptor.msg_type) == (FORMAT_EVENT, "QM1", 8)


def test_perfmev_alone_tells_mqs_events_and_none_of_ours(deep):
    deep.alter("QMGR", "", trigmon_event="disabled")
    put(deep, 8)
    deep.exit(deep.come()[0], 1)
    assert deep.taken() == []
    assert [message.reason for message in deep.pcf()] == [Reason.Q_DEPTH_HIGH]


def test_a_message_moved_away_counts_as_got_and_where_it_goes_as_put(deep):
    deep.define("OTHER", max_q_depth=10, q_depth_high_limit=50, q_depth_high_event="enabled")
    put(deep, 8)
    deep.events()
    deep.did(Move(q_name="DEEP", to_q_name="OTHER"), "operator")
    assert sorted(deep.names()) == ["queue_depth_high", "queue_depth_low"]


def test_service_interval_events_come_in_turn_as_gets_are_late_and_in_time_again(deep):
    deep.alter(
        "QLOCAL", "DEEP", q_depth_high_event="disabled", q_service_interval=1000, q_service_interval_event="high"
    )
    put(deep)
    deep.clock.advance(1000)
    put(deep)  # in time so far: the timer goes on since the first put
    assert deep.events() == []
    deep.clock.advance(1)
    put(deep)
    (high,) = deep.events()
    assert (high["event"], high["service_interval_ms"]) == ("service_interval_high", 1000)
    deep.get("DEEP")  # late as well, but high is disabled now; the timer begins anew
    deep.clock.advance(999)
    deep.get("DEEP")
    assert deep.names() == ["service_interval_ok"]
    deep.get("DEEP")  # empties the queue: the timer is off
    deep.clock.advance(60_000)
    put(deep)
    assert deep.events() == []
    deep.clock.advance(60_000)
    deep.get("DEEP")
    assert deep.names() == ["service_interval_high"]

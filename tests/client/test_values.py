"""Values and calls that would cost the connection are refused, or put in order, before anything is sent."""

import pytest

import trigmon
from trigmon.mq.calls import Ping


def depth(queue):
    return queue.inquire("current_q_depth")["current_q_depth"]


@pytest.mark.parametrize("said", [0.5, "5", True, 2**31, float("nan"), 2**70, b"5", [5]])
def test_a_number_that_is_none_is_refused_before_it_is_sent_and_costs_nothing(qm, queue, said):
    queue.put(b"one", syncpoint=True)
    with pytest.raises(trigmon.WaitIntervalError, match="wait_interval_ms must be a whole number of 32 bits"):
        queue.get(wait_interval_ms=said)
    with pytest.raises(trigmon.WaitIntervalError):
        queue.get_many(5, wait_interval_ms=said)
    with pytest.raises(trigmon.BufferLengthError):
        queue.get(max_length=said)
    with pytest.raises(trigmon.OptionsError):
        queue.get_many(said)
    with pytest.raises(trigmon.PriorityError):
        queue.put(b"", priority=said)
    if said not in (True, 2**31):  # a number, if not a sensible one: the queue manager has a word for it
        with pytest.raises((TypeError, ValueError, OverflowError)):
            qm.explain("SYSTEM.DEFAULT.LOCAL.QUEUE", said)
        with pytest.raises((TypeError, ValueError, OverflowError)):
            qm.outcome(said)
    qm.commit()
    assert depth(queue) == 1


def test_a_whole_number_may_be_a_float(queue):
    queue.put(b"one", priority=3.0)
    assert queue.get(wait_interval_ms=5.0, max_length=3.0).priority == 3


@pytest.mark.parametrize("said", [7, 0, 5.0, "yes"])
def test_a_number_of_milliseconds_is_no_value_for_the_flag_wait(queue, said):
    with pytest.raises(TypeError, match=r"wait is True or False, not .*wait_interval_ms"):
        queue.get(wait=said)


@pytest.mark.parametrize("name", [5, None, b"Q", 0.5])
def test_a_name_that_is_no_text_is_refused_before_it_is_sent(qm, name):
    for use in (lambda: qm.put(name, b""), lambda: qm.put_many(name, [b""]), lambda: qm.open(name, "output")):
        with pytest.raises(TypeError):
            use()
    assert qm.call(Ping())


@pytest.mark.parametrize("syncpoint", [True, False])
def test_bodies_may_come_from_calls_on_the_same_connection(qm, q_name, queue, syncpoint):
    qm.put_many(q_name, [b"%d" % number for number in range(700)])
    copied = qm.put_many("SYSTEM.DEFAULT.LOCAL.QUEUE", (m.data for m in queue.browse()), syncpoint=syncpoint)
    qm.commit()
    assert len(set(copied)) == 700
    with qm.open("SYSTEM.DEFAULT.LOCAL.QUEUE", "input_shared") as there:
        assert [int(message.data) for message in there.drain()] == list(range(700))


def test_a_refusal_read_by_a_call_in_between_is_the_put_manys(qm, q_name, queue):
    def bodies():
        for number in range(3000):
            if number % 256 == 10:
                qm.call(Ping())
            if number == 300:
                queue.set(inhibit_put="inhibited")
            yield b"x"

    with pytest.raises(trigmon.PutInhibited):
        queue.put_many(bodies(), syncpoint=True)
    assert qm.call(Ping())
    qm.backout()

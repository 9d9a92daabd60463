"""The search for bad messages, played against queues of good and bad ones; pure."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trigmon.spark.poison_search.bisect import Search, Step, why


class Queue:
    """A queue whose batches fail when a bad message is in them, drained as a job drains one."""

    def __init__(self, bodies, works=lambda bodies: "bad" not in bodies):
        self.bodies = list(bodies)
        self.works = works
        self.written, self.rejected, self.tried = [], [], 0

    def drain(self, search):
        """Whether it came to the end; False where the search gave up."""
        batch = []
        while batch or self.bodies:
            if not batch:
                batch, self.bodies = self.bodies[: search.limit], self.bodies[search.limit :]
            self.tried += 1
            assert self.tried < 100_000
            if self.works(batch):
                self.written += batch
                search.succeeded(len(batch))
                batch = []
                continue
            step = search.failed(len(batch))
            half = len(batch) // 2
            if step is Step.KEEP_FIRST:
                batch, back = batch[:half], batch[half:]
                self.bodies = back + self.bodies
            elif step is Step.KEEP_LAST:
                # What is given back goes to its place, before everything that came later.
                batch, back = batch[-1:], batch[:-1]
                self.bodies = back + self.bodies
            elif step is Step.PUT_BACK:
                batch, self.bodies = [], batch + self.bodies
            elif step is Step.REJECT:
                self.rejected += batch
                batch = []
            elif step is Step.GIVE_UP:
                self.bodies = batch + self.bodies
                return False
        return True


@given(st.lists(st.booleans(), max_size=60), st.integers(1, 40), st.integers(1, 3))
def test_the_bad_ones_are_set_aside_and_the_rest_is_written_once_whatever_their_places(bad, max_rows, attempts):
    bodies = ["bad" if is_bad else number for number, is_bad in enumerate(bad)]
    queue = Queue(bodies)
    is_done = queue.drain(Search(max_rows, attempts))
    good = [body for body in bodies if body != "bad"]
    assert sorted(queue.written + [body for body in queue.bodies if body != "bad"]) == good
    assert len(queue.rejected) + queue.bodies.count("bad") == bodies.count("bad")
    if is_done:
        assert sorted(queue.written) == good
        assert queue.rejected == ["bad"] * bodies.count("bad")


@given(st.integers(0, 999))
def test_one_bad_message_among_a_thousand_costs_few_attempts(place):
    bodies = list(range(1000))
    bodies[place] = "bad"
    queue = Queue(bodies)
    assert queue.drain(Search(1000))
    assert queue.rejected == ["bad"]
    assert len(queue.written) == 999
    assert queue.tried < 45


@given(st.integers(1, 300), st.integers(1, 300))
def test_where_everything_fails_nothing_is_set_aside(count, max_rows):
    queue = Queue(range(count), works=lambda bodies: False)
    assert not queue.drain(Search(max_rows))
    assert (queue.rejected, queue.written) == ([], [])
    assert sorted(queue.bodies) == list(range(count))
    assert queue.tried < 40


def test_a_sink_that_breaks_in_the_middle_of_a_search_costs_one_message_at_most():
    tried = []

    def works(bodies):
        tried.append(bodies)
        return "bad" not in bodies and len(tried) < 8

    queue = Queue([*range(20), "bad", *range(20, 100)], works)
    assert not queue.drain(Search(100))
    assert len(queue.rejected) <= 1


def test_a_bad_message_that_is_all_there_is_is_set_aside_by_a_drain_that_had_success():
    queue = Queue([*range(10), "bad"])
    assert queue.drain(Search(10))
    assert queue.rejected == ["bad"]
    alone = Queue(["bad"])
    assert not alone.drain(Search(10))
    assert alone.rejected == []


def test_what_failed_once_and_then_not_is_no_bad_message():
    failures = iter([True, False])
    queue = Queue(range(10), works=lambda bodies: not next(failures, False))
    assert queue.drain(Search(10))
    assert queue.written == list(range(10))


def test_a_lone_message_that_was_backed_out_too_often_is_bad_though_nothing_succeeded():
    search = Search(1, attempts=1)
    assert search.failed(1, is_over_threshold=True) is Step.REJECT


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain words", "ValueError: plain words"),
        ("", "ValueError: "),
        (
            "Job aborted due to stage failure: Task 0\nTraceback (most recent call last):\n  File x\n"
            "trigmon.spark.arrow_rows.UnfitRowError: message 41 is no JSON object\n\n"
            "\tat org.apache.spark.Task.run(T.java)",
            "ValueError: trigmon.spark.arrow_rows.UnfitRowError: message 41 is no JSON object",
        ),
        (
            "An error occurred while calling o383.save.\n: org.apache.spark.SparkException: Job aborted\n"
            "\tat a.b(C.java)\n"
            "Caused by: org.apache.spark.SparkException: Python worker exited unexpectedly (crashed).\n"
            "\tat d.e(F.java)\n"
            "Caused by: java.io.EOFException\n\t... 25 more",
            "ValueError: org.apache.spark.SparkException: Python worker exited unexpectedly (crashed).",
        ),
    ],
)
def test_of_an_error_the_line_with_the_cause_is_reported(text, expected):
    assert why(ValueError(text)) == expected

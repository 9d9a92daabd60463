"""The search for bad messages, played against queues of good and bad ones; pure."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.spark.captured_errors import captured
from trigmon.spark.poison_search.bisect import Search, Step
from trigmon.spark.poison_search.failure_text import why


class Queue:
    """A queue whose batches fail when a bad message is in them, drained as a job drains one.

    ``works`` says of a batch whether it succeeds; ``history`` is what was tried, and whether it did.
    """

    def __init__(self, bodies, works=lambda bodies: not any("bad" in str(body) for body in bodies)):
        self.bodies = list(bodies)
        self.works = works
        self.written, self.rejected, self.history = [], [], []

    @property
    def tried(self):
        return len(self.history)

    def drain(self, search, over=()):
        """Whether it came to the end; False where the search gave up. ``over`` are those bad by BOTHRESH."""
        batch = []
        while batch or self.bodies:
            if not batch:
                batch, self.bodies = self.bodies[: search.limit], self.bodies[search.limit :]
                if search.is_choosing and (at := search.choose(batch)) is not None:
                    self.bodies = batch[:at] + batch[at + 1 :] + self.bodies
                    batch = [batch[at]]
            assert self.tried < 100_000
            self.history.append((tuple(batch), self.works(batch)))
            if self.history[-1][1]:
                self.written += batch
                search.succeeded(len(batch))
                batch = []
                continue
            key = batch[0] if len(batch) == 1 else None
            step = search.failed(len(batch), key, is_over_threshold=key in over)
            half = len(batch) // 2
            if step is Step.KEEP_FIRST:
                batch, back = batch[:half], batch[half:]
                self.bodies = back + self.bodies
            elif step is Step.PUT_BACK:
                # What is given back goes to its place, before everything that came later.
                batch, self.bodies = [], self._in_order(batch + self.bodies)
            elif step is Step.REJECT:
                self.rejected += batch
                batch = []
            elif step is Step.GIVE_UP:
                self.bodies = self._in_order(batch + self.bodies)
                return False
            self.bodies = self._in_order(self.bodies)
        return True

    def _in_order(self, bodies):
        return sorted(bodies, key=lambda body: int(str(body).removeprefix("bad ")))


def messages(bad):
    """Returns bodies; those of bad messages begin with the word."""
    return [f"bad {number}" if is_bad else number for number, is_bad in enumerate(bad)]


def good(bodies):
    return [body for body in bodies if isinstance(body, int)]


@given(st.lists(st.booleans(), max_size=60), st.integers(1, 40), st.integers(1, 3))
def test_bad_ones_alone_are_set_aside_and_the_rest_is_written_once_whatever_their_places(bad, max_rows, attempts):
    bodies = messages(bad)
    queue = Queue(bodies)
    is_done = queue.drain(Search(max_rows, attempts))
    assert sorted(queue.written + good(queue.bodies)) == good(bodies)
    assert good(queue.rejected) == []
    assert sorted(queue.rejected + [body for body in queue.bodies if isinstance(body, str)]) == sorted(
        body for body in bodies if isinstance(body, str)
    )
    if is_done:
        assert queue.bodies == []


@given(
    st.lists(st.booleans(), max_size=60), st.integers(1, 40), st.integers(1, 3), st.integers(0, 60), st.integers(1, 60)
)
def test_a_sink_that_fails_for_a_while_sets_no_good_message_aside(bad, max_rows, attempts, begins, lasts):
    queue = Queue(messages(bad))
    there = queue.works
    queue.works = lambda bodies: not begins <= queue.tried < begins + lasts and there(bodies)
    queue.drain(Search(max_rows, attempts))
    assert good(queue.rejected) == []


@given(st.lists(st.booleans(), min_size=1, max_size=60), st.integers(1, 40), st.integers(1, 3))
def test_before_a_message_is_set_aside_another_has_succeeded_after_it_failed_alone(bad, max_rows, attempts):
    queue = Queue(messages(bad))
    queue.drain(Search(max_rows, attempts))
    for body in queue.rejected:
        alone = [at for at, (batch, _) in enumerate(queue.history) if batch == (body,)]
        assert any(success for _, success in queue.history[alone[0] : alone[-1]])


@given(st.integers(0, 998))
def test_one_bad_message_among_a_thousand_costs_few_attempts(place):
    queue = Queue(messages([number == place for number in range(1000)]))
    assert queue.drain(Search(1000))
    assert queue.rejected == [f"bad {place}"]
    assert len(queue.written) == 999
    assert queue.tried < 50


@given(st.integers(1, 300), st.integers(1, 300))
def test_where_everything_fails_nothing_is_set_aside(count, max_rows):
    queue = Queue(range(count), works=lambda bodies: False)
    search = Search(max_rows)
    assert not queue.drain(search)
    assert not search.is_all_suspect or count <= 17
    assert (queue.rejected, queue.written) == ([], [])
    assert sorted(queue.bodies) == list(range(count))
    assert queue.tried < 40


@pytest.mark.parametrize("first", [8, 12, 30])
def test_a_burst_of_bad_messages_drains_though_few_good_ones_are_among_them(first):
    queue = Queue(messages([True] * first + [False] * first + [True] + [False] * 3))
    assert queue.drain(Search(10_000))
    assert len(queue.rejected) == first + 1
    assert len(queue.written) == first + 3


def test_where_bad_messages_outnumber_the_good_each_drain_gets_on_and_bothresh_ends_it():
    queue = Queue(messages([True] * 8 + [False] * 3 + [True]))
    counts, drains = dict.fromkeys(queue.bodies, 0), 0
    while queue.bodies:
        search, drains = Search(10_000), drains + 1
        over = {body for body, count in counts.items() if count >= 3}
        if not queue.drain(search, over):
            assert search.is_all_suspect
            counts[search.first_suspect] += 1
        assert drains < 40
    assert good(queue.rejected) == []
    assert queue.written == [10, 8, 9] or sorted(queue.written) == [8, 9, 10]


@pytest.mark.parametrize("max_rows", [1, 10, 1000])
def test_repeated_drains_end_where_a_good_one_comes_now_and_then(max_rows):
    queue = Queue(messages([True] * 20 + [False] + [True] * 20))
    for drains in range(200):
        if queue.drain(Search(max_rows, seed=drains)):
            break
        queue.bodies.append(1000 + drains)
    assert queue.bodies == good(queue.rejected) == []
    assert len(queue.rejected) == 40


def test_a_bad_message_that_is_all_there_is_left_waits_for_a_success_or_for_bothresh():
    queue = Queue([*range(10), "bad 10"])
    assert not queue.drain(Search(10))
    assert (queue.rejected, queue.bodies) == ([], ["bad 10"])
    assert queue.drain(Search(10), over={"bad 10"})
    assert queue.rejected == ["bad 10"]


def test_what_failed_once_and_then_not_is_no_bad_message():
    failures = iter([True, False])
    queue = Queue(range(10), works=lambda bodies: not next(failures, False))
    assert queue.drain(Search(10))
    assert queue.written == list(range(10))


def test_a_lone_message_that_was_backed_out_too_often_is_bad_though_nothing_succeeded():
    search = Search(1, attempts=1)
    assert search.failed(1, "key", is_over_threshold=True) is Step.REJECT


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
        *(
            (
                f"Job aborted: Python worker\nTraceback (most recent call last):\n  File x, in y\n    raise\n{raised}\n"
                "\tat org.apache.spark.Task.run(T.java)",
                f"ValueError: {raised}",
            )
            for raised in (
                "pyarrow.lib.ArrowInvalid: JSON parse error: Missing a comma",
                "decimal.InvalidOperation: [<class 'decimal.ConversionSyntax'>]",
                "AssertionError",
            )
        ),
        (
            "Traceback (most recent call last):\n  File x\nKeyError: 'a'\n\nDuring handling of the above exception:\n\n"
            "Traceback (most recent call last):\n  File y\nStopIteration\n",
            "ValueError: StopIteration",
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


def test_of_a_stream_that_failed_the_root_cause_is_reported():
    text = "[STREAM_FAILED] Query [id = 1] terminated with exception: [TASK_WRITE_FAILED] Task failed"
    first = ("a.SparkException", "[TASK_WRITE_FAILED]")
    full = captured(text, first, ("java.io.IOException", "No space left on device"))
    assert why(full) == "CapturedError: java.io.IOException: No space left on device"
    raised = "x\nTraceback (most recent call last):\n  File x\nKeyError: 'a'\n"
    assert why(captured(text, first, ("a.PythonException", raised))) == "CapturedError: KeyError: 'a'"
    assert why(captured(text)) == f"CapturedError: {text}"
    assert why(captured("[TABLE_NOT_FOUND] t", ("a.B", "c"))) == "CapturedError: [TABLE_NOT_FOUND] t"

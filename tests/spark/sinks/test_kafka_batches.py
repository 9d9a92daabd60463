"""Batches in a topic of Kafka, with transactions as specified: each once, whatever job is killed or replaced."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress

import pytest
from confluent_kafka import KafkaError, KafkaException
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.spark.sinks.kafka_model import Cluster
from tests.spark.sinks.plays import name
from trigmon.spark.poison_search.blame import is_of_sink
from trigmon.spark.sinks import kafka_client
from trigmon.spark.sinks.kafka_batches import KafkaBatches
from trigmon.spark.sinks.kafka_client import FencedError, Record, UnfitMessageError, check_topics
from trigmon.spark.sinks.sink import BatchName, BatchRefusedError, SinkError

TOPIC, MARKS = "orders", "trigmon.batches"
ROWS = 3
CALLS = 12
"""Calls of Kafka in an attempt: each can be a job's last, or have another job before it."""


class Killed(BaseException):
    """A job's end by ``kill -9``: nothing of it is done after this."""


@pytest.fixture
def cluster(monkeypatch):
    cluster = Cluster(TOPIC, MARKS)
    monkeypatch.setattr(kafka_client, "library", lambda: cluster.library)
    for seconds in ("_ANSWER_S", "_TRANSACTION_S"):  # nobody else acts while a job waits
        monkeypatch.setattr(kafka_client, seconds, 0)
    return cluster


def job():
    return KafkaBatches({"transaction.timeout.ms": "0"}, TOPIC, MARKS)


def records(batch):
    return [Record(f"{batch.id}-{n}".encode()) for n in range(ROWS)]


def written(cluster):
    """Returns the values that a reader of committed messages sees, in order."""
    return [sent.value.decode() for sent in cluster.committed(TOPIC)]


def at_call(cluster, number, act, of=None):
    """Has something done before that call of Kafka, of any or one name, once. What it calls is not counted."""
    seen = 0

    def hook(name):
        nonlocal seen
        seen += of in (None, name)
        if seen == number:
            cluster.hook = lambda _: None
            act()

    cluster.hook = hook


def kill(cluster):
    """Ends the job: what it still calls on its way out does nothing."""

    def dead(_):
        raise Killed

    cluster.hook = dead
    raise Killed


def lose_the_answer(cluster):
    def hook(name):
        if name == "committed":
            cluster.hook = lambda _: None
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "no answer"))

    cluster.hook = hook


class TestOneJob:
    def test_a_batch_is_written_once_and_a_job_that_comes_later_knows_it(self, cluster):
        assert job().write(name(1), records(name(1)))
        assert not job().write(name(1), records(name(1)))
        assert written(cluster) == ["b1-0", "b1-1", "b1-2"]
        assert [(sent.key, sent.value) for sent in cluster.committed(MARKS)] == [(b"orders/QM/Q/CONSUMER", b"2")]

    def test_a_job_begins_once_and_writes_batch_behind_batch(self, cluster):
        begun = []
        cluster.hook = lambda name: begun.append(name) if name == "init_transactions" else None
        writer = job()
        for number in range(1, 5):
            assert writer.write(name(number), records(name(number)))
        assert len(begun) == 1

    def test_a_commit_whose_answer_is_lost_is_found_and_one_that_was_not_made_is_an_error_of_the_sink(self, cluster):
        lose_the_answer(cluster)
        assert job().write(name(1), records(name(1)))
        lose_the_answer(cluster)
        assert job().refuse(name(2))
        assert job().refuse(name(2))

        def no_answer():
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "no answer"))

        at_call(cluster, 1, no_answer, "commit_transaction")
        with pytest.raises(SinkError, match="Kafka, committing: no answer"):
            job().write(name(3), records(name(3)))
        assert len(written(cluster)) == ROWS

    def test_an_error_of_the_rows_aborts_and_is_raised_as_it_is(self, cluster):
        def failing():
            yield Record(b"first")
            raise ZeroDivisionError

        writer = job()
        with pytest.raises(ZeroDivisionError):
            writer.write(name(1), failing())
        assert writer.write(name(1), records(name(1)))
        assert len(written(cluster)) == ROWS

    def test_a_message_that_is_too_large_is_no_error_of_the_sink(self, cluster):
        with pytest.raises(UnfitMessageError, match="too large") as raised:
            job().write(name(1), [Record(b"x" * 1001)])
        assert not is_of_sink(raised.value)
        assert job().write(name(1), records(name(1)))

    def test_a_consumer_of_another_topic_is_remembered_by_itself(self, cluster):
        cluster.topics["other"] = {}
        assert job().write(name(1), records(name(1)))
        assert KafkaBatches({}, "other", MARKS).write(name(1), records(name(1)))


class TestReplacedJobs:
    @pytest.mark.parametrize("call", range(1, 4 + ROWS + 4))
    def test_a_batch_of_a_job_killed_before_any_call_is_written_once_by_the_next(self, cluster, call):
        at_call(cluster, call, lambda: kill(cluster))
        with suppress(Killed):
            job().write(name(1), records(name(1)))
        cluster.hook = lambda _: None
        job().write(name(1), records(name(1)))
        assert written(cluster) == ["b1-0", "b1-1", "b1-2"]

    def test_a_job_that_another_has_replaced_learns_what_became_of_the_batch(self, cluster):
        late = job()
        at_call(cluster, ROWS, lambda: job().write(name(1), records(name(1))), "produce")
        assert not late.write(name(1), records(name(1)))
        at_call(cluster, 1, lambda: job().refuse(name(2)), "commit_transaction")
        with pytest.raises(BatchRefusedError):
            late.write(name(2), records(name(2)))
        at_call(cluster, ROWS, lambda: job().write(name(3, "b3-0-1", (0, 1)), []), "produce")
        with pytest.raises(FencedError, match="Another job of the same consumer"):
            late.write(name(3), records(name(3)))
        assert written(cluster) == ["b1-0", "b1-1", "b1-2"]

    def test_a_transaction_of_another_consumer_over_the_marks_is_waited_for(self, cluster):
        job().write(name(1), records(name(1)))
        other = kafka_client.Producer({}, "other")
        with other.transaction():
            other.send(MARKS, Record(b"2", b"orders/other", partition=0))
            polls = []

            def hook(name):
                polls.append(name)
                if polls.count("poll") == 5:
                    cluster.hook = lambda _: None
                    other._producer.commit_transaction(1)

            cluster.hook = hook
            assert not KafkaBatches({}, TOPIC, MARKS).write(name(1), records(name(1)))
            assert cluster.committed(MARKS)[-1].key == b"orders/other"
            other._producer.begin_transaction()

    def test_a_transaction_that_does_not_end_is_an_error_of_the_sink_and_writes_nothing_twice(self, cluster):
        job().write(name(1), records(name(1)))
        other = kafka_client.Producer({}, "other")
        other._producer.begin_transaction()
        other.send(MARKS, Record(b"2", b"orders/other", partition=0))
        with pytest.raises(SinkError, match=r"trigmon\.batches has a transaction that does not end"):
            job().write(name(1), records(name(1)))
        assert len(written(cluster)) == ROWS


class Jobs(RuleBasedStateMachine):
    """Jobs of a consumer that come to its batches, one behind the other: old and new ones, killed at any call."""

    def __init__(self):
        super().__init__()
        self.cluster = Cluster(TOPIC, MARKS)
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(kafka_client, "library", lambda: self.cluster.library)
        for seconds in ("_ANSWER_S", "_TRANSACTION_S"):
            self.patch.setattr(kafka_client, seconds, 0)
        self.old, self.number, self.refused, self.others = job(), 1, set(), 0

    @rule(what=st.sampled_from(["write", "refuse"]), is_old=st.booleans())
    def acts(self, what, is_old):
        self._act(what, self.old if is_old else job())

    @rule(what=st.sampled_from(["write", "refuse"]), is_old=st.booleans(), call=st.integers(1, CALLS))
    def is_killed_before_a_call(self, what, is_old, call):
        at_call(self.cluster, call, lambda: kill(self.cluster))
        try:
            self._act(what, self.old if is_old else job())
        except Killed:
            self.cluster.hook = lambda _: None
            self.old = job()

    @rule(what=st.sampled_from(["write", "refuse"]), is_old=st.booleans())
    def loses_the_answer_to_a_commit(self, what, is_old):
        lose_the_answer(self.cluster)
        self._act(what, self.old if is_old else job())

    @rule(what=st.tuples(*[st.sampled_from(["write", "refuse"])] * 2), is_old=st.booleans(), call=st.integers(1, CALLS))
    def has_another_job_act_before_a_call(self, what, is_old, call):
        at_call(self.cluster, call, lambda: self._act(what[0], job()))
        self._act(what[1], self.old if is_old else job())

    @rule(is_old=st.booleans(), call=st.integers(1, CALLS))
    def has_another_consumer_write_before_a_call(self, is_old, call):
        self.others += 1
        other = BatchName("QM/OTHER/CONSUMER", self.others, f"other{self.others}")

        def write():
            with suppress(SinkError):  # over this consumer's mark it would wait
                job().write(other, records(other))

        at_call(self.cluster, call, write)
        self._act("write", self.old if is_old else job())

    @rule()
    def goes_on_to_the_next_batch(self):
        self._act("write", job())
        assert self._seen()[f"b{self.number}"] == (0 if self.number in self.refused else ROWS)
        self.number += 1

    @invariant()
    def each_batch_is_there_whole_and_once_or_not_at_all(self):
        for number in range(1, self.number + 1):
            assert self._seen()[f"b{number}"] in ((0,) if number in self.refused else (0, ROWS))

    def teardown(self):
        self.patch.undo()

    def _seen(self):
        return Counter(value.rpartition("-")[0] for value in written(self.cluster))

    def _act(self, what, who):
        """Has a job write or refuse the batch. Its errors are those that a drain knows what to do with."""
        batch = name(self.number)
        try:
            if what == "write":
                who.write(batch, records(batch))
            elif who.refuse(batch):
                self.refused.add(self.number)
        except BatchRefusedError:  # by a job that was killed before it knew, perhaps
            self.refused.add(self.number)
        except SinkError:
            pass
        self.cluster.hook = lambda _: None


TestJobs = Jobs.TestCase
TestJobs.settings = settings(max_examples=200, stateful_step_count=20, deadline=None)


class TestTopics:
    def test_the_topic_of_the_marks_is_made_compacted(self, cluster):
        del cluster.topics[MARKS]
        check_topics({}, TOPIC, MARKS)
        assert MARKS in cluster.topics

    def test_a_topic_that_is_not_there_is_named(self, cluster):
        with pytest.raises(SinkError, match="Kafka has no topic nowhere"):
            check_topics({}, "nowhere", MARKS)

    def test_a_topic_of_marks_that_forgets_is_refused(self, cluster):
        cluster.policy = "delete"
        with pytest.raises(SinkError, match=r"trigmon\.batches has cleanup.policy=delete"):
            check_topics({}, TOPIC, MARKS)

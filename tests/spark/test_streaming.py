"""Streams that drain a queue, by a real Spark: every message once, the last batch settled, and what that rests on."""

from __future__ import annotations

import time

import pytest

from tests.daemons import define
from tests.spark.conftest import depth, row_of
from tests.spark.recorded import RecordedSource, entries, write
from trigmon.mq.enums import MsgFlag
from trigmon.mq.errors import NoMsgAvailable

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("default::ResourceWarning", "default::DeprecationWarning", "default::FutureWarning"),
]


@pytest.fixture
def run(spark, shared_daemon, tmp_path):
    """Drains by AvailableNow into a function of rows and batch id; the finished query."""

    from pyspark.errors import StreamingQueryException

    def run(q_name, each, source="trigmon", checkpoint="checkpoint", **options):
        try:
            return query(q_name, each, source, checkpoint, **options)
        except StreamingQueryException as error:
            # Spark gives a Python worker ten seconds to come, by a constant of its own: a busy machine needs more.
            if "Python worker failed to connect back" not in str(error):
                raise
            return run(q_name, each, source, checkpoint, **options)

    def query(q_name, each, source, checkpoint, **options):
        stream = spark.readStream.format(source).options(queue=q_name, address=shared_daemon.address, **options).load()
        started = (
            stream.writeStream.foreachBatch(lambda frame, number: each(frame.collect(), number))
            .option("checkpointLocation", str(tmp_path / checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        started.awaitTermination()
        return started

    return run


def fill(qm, q_name, count, first=0):
    qm.put_many(q_name, [b"%d" % n for n in range(first, first + count)])


def bodies(batches):
    return [int(bytes(row.data)) for _, rows in batches for row in rows]


class TestTheOrderOfSparksCallsThatTheLastSettlingRestsOn:
    """``latestOffset(start)`` comes when the sink has committed the batch that ends at ``start``, the last one too."""

    @pytest.mark.slow
    def test_latest_offset_follows_every_finished_batch_and_commit_leaves_the_last_one_out(
        self, qm, q_name, run, spark, tmp_path
    ):
        fill(qm, q_name, 100)
        diary = tmp_path / "diary"
        spark.dataSource.register(RecordedSource)
        run(
            q_name,
            lambda rows, number: write(diary, call="sink", number=number, count=len(rows)),
            source="recorded",
            maxRows=30,
            diary=str(diary),
        )
        reported = [entry for entry in entries(diary) if entry["call"] not in ("initialOffset", "stop", "prepare")]
        ends = [entry["end"] for entry in reported if entry["call"] == "partitions"]
        assert len(ends) == 4
        expected, start = [], 0
        for number, end in enumerate(ends):
            expected += [("latestOffset", start, end)]
            expected += [("commit", None, start)] if start else []
            expected += [("partitions", start, end), ("sink", None, None)]
            assert [e["count"] for e in reported if e.get("number") == number] == [30 if number < 3 else 10]
            start = end
        expected += [("latestOffset", start, start)]
        assert [(e["call"], e.get("start"), e.get("end")) for e in reported] == expected
        readers = {e["pid"] for e in entries(diary) if e["call"] not in ("sink",)}
        assert len(readers) == 1, "one process keeps the reader for the whole run"

    def test_after_a_failed_batch_its_offset_is_planned_again_before_latest_offset_is_asked(
        self, qm, q_name, run, spark, tmp_path
    ):
        fill(qm, q_name, 20)
        diary = tmp_path / "diary"
        spark.dataSource.register(RecordedSource)

        def sink(rows, number):
            write(diary, call="sink", number=number)
            if number == 1 and not (tmp_path / "failed").exists():
                (tmp_path / "failed").touch()
                raise OSError("the sink is full")

        with pytest.raises(Exception, match="the sink is full"):
            run(q_name, sink, source="recorded", maxRows=10, diary=str(diary))
        before = len(entries(diary))
        run(q_name, sink, source="recorded", maxRows=10, diary=str(diary))
        reported = [e for e in entries(diary)[before:] if e["call"] in ("latestOffset", "partitions", "sink")]
        assert [e["call"] for e in reported] == ["partitions", "sink", "latestOffset"]
        assert depth(qm, q_name) == 0


def test_available_now_drains_to_the_last_message_and_settles_the_last_batch(qm, q_name, run):
    fill(qm, q_name, 100)
    batches = []
    run(q_name, lambda rows, number: batches.append((number, rows)), maxRows=30)
    assert [len(rows) for _, rows in batches] == [30, 30, 30, 10]
    assert bodies(batches) == list(range(100))
    assert qm.reservations(q_name) == []
    assert depth(qm, q_name) == 0


def test_a_second_run_of_the_same_checkpoint_takes_what_came_since_and_only_that(qm, q_name, run):
    batches = []
    for first in (0, 40):
        fill(qm, q_name, 40, first)
        run(q_name, lambda rows, number: batches.append((number, rows)))
    run(q_name, lambda rows, number: batches.append((number, rows)))
    assert [number for number, _ in batches] == [0, 1]
    assert bodies(batches) == list(range(80))


def test_a_batch_that_failed_is_the_very_same_when_the_query_starts_again(qm, q_name, run):
    fill(qm, q_name, 30)
    batches = []

    def failing(rows, number):
        batches.append((number, rows))
        raise OSError("no room")

    with pytest.raises(Exception, match="no room"):
        run(q_name, failing, maxRows=20)
    qm.put(q_name, b"1000", priority=9)
    run(q_name, lambda rows, number: batches.append((number, rows)), maxRows=20)
    assert [number for number, _ in batches] == [0, 0, 1]
    first, again, _ = batches
    assert [bytes(row.msg_id) for row in first[1]] == [bytes(row.msg_id) for row in again[1]]
    assert {row.backout_count for row in first[1]} == {0}
    assert bodies(batches[1:]) == [*range(20), 1000, *range(20, 30)]
    assert depth(qm, q_name) == 0


def test_the_queue_is_open_for_input_from_the_first_batch_to_the_last_and_its_close_starts_nothing(
    qm, run, shared_daemon
):
    def look(rows, number):
        with shared_daemon.connect() as another_thread_s:
            seen.append(row_of(another_thread_s, "START.Q")["open_input_count"])

    define(qm, "START.INITQ")
    define(qm, "START.PROC", object_type="PROCESS", appl_id="job.py")
    triggered = {"trigger_control": "on", "trigger_type": "first", "process_name": "START.PROC"}
    define(qm, "START.Q", def_persistence="persistent", initiation_q_name="START.INITQ", **triggered)
    with qm.open("START.INITQ", "input_shared") as monitor:
        fill(qm, "START.Q", 50)
        assert monitor.get().format == "MQTRIG"
        seen = []
        run("START.Q", look, maxRows=20)
        assert seen == [1, 1, 1]
        until_closed(qm, "START.Q")
        with pytest.raises(NoMsgAvailable):
            monitor.get()
        qm.put("START.Q", b"a new one")
        assert monitor.get().format == "MQTRIG"


def until_closed(qm, q_name):
    deadline = time.monotonic() + 20
    while row_of(qm, q_name)["open_input_count"]:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_group_is_never_split_over_batches(qm, q_name, run):
    with qm.open(q_name, "output") as q:
        for group in range(6):
            for number in range(1, 8):
                flag = MsgFlag.LAST_MSG_IN_GROUP if number == 7 else MsgFlag.MSG_IN_GROUP
                q.put(b"%d" % number, group_id=b"%d" % group, msg_seq_number=number, msg_flags=flag)
    batches = []
    run(q_name, lambda rows, number: batches.append((number, rows)), maxRows=10, groups=True)
    assert [len(rows) for _, rows in batches] == [7] * 6
    assert all(len({bytes(row.group_id) for row in rows}) == 1 for _, rows in batches)
    assert [bytes(row.data) for _, rows in batches for row in rows] == [b"%d" % n for n in range(1, 8)] * 6


def test_two_queries_at_a_time_need_two_consumers(qm, q_name, run, shared_daemon, monkeypatch):
    fill(qm, q_name, 5)
    with shared_daemon.connect() as other, other.open(q_name, "input_shared") as held:
        held.reserve(f"spark {q_name}", max_messages=2)
        batches = []
        run(q_name, lambda rows, number: batches.append((number, rows)), consumer="another")
        assert bodies(batches) == [2, 3, 4]


def test_a_checkpoint_of_another_consumer_is_reported_and_settles_nothing(qm, q_name, run):
    fill(qm, q_name, 5)

    def failing(rows, number):
        raise OSError("no room")

    with pytest.raises(Exception, match="no room"):
        run(q_name, failing, consumer="first")
    with pytest.raises(Exception, match="which is first's and not second's"):
        run(q_name, lambda rows, number: None, consumer="second")
    assert depth(qm, q_name) == 5


def test_a_batch_that_an_operator_gives_back_while_it_is_written_fails_the_query_with_that_reason(
    qm, q_name, run, shared_daemon
):
    fill(qm, q_name, 5)

    def interfered(rows, number):
        with shared_daemon.connect() as operator:
            operator.release(operator.reservations(q_name)[0]["reservation"])

    with pytest.raises(Exception, match=f"was given back to {q_name} while its batch was being written"):
        run(q_name, interfered)
    assert depth(qm, q_name) == 5

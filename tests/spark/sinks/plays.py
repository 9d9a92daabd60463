"""What every sink of :mod:`trigmon.spark.sinks` must show: a class of tests, and the sinks' parts that tests spoil.

A file of tests inherits it and has the fixtures ``made``, which returns a new sink with options, ``rows``, which reads,
and ``files``, which lists what lies there.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.spark.conftest import depth
from trigmon.spark import batches, drain
from trigmon.spark.sinks.sink import BatchName, BatchRefusedError, SinkError


def name(number, id_="", part=None):
    return BatchName("QM/Q/CONSUMER", number, id_ or f"b{number}", part)


class Plays:
    """The tests. ``made(**options)`` returns a sink, ``rows()`` what is in its table."""

    def test_a_batch_that_comes_again_is_written_once_and_its_attempts_leave_no_file(self, spark, made, rows, files):
        assert made().write(spark.range(5), name(1))
        there = files()
        assert not made().write(spark.range(5), name(1))
        assert sorted(row["id"] for row in rows()) == [0, 1, 2, 3, 4]
        assert files() == there

    def test_a_refused_batch_is_never_written_and_a_written_one_is_not_refused(self, spark, made, rows):
        sink = made()
        assert sink.write(spark.range(1), name(1))
        assert not sink.refuse(name(1))
        assert sink.refuse(name(2))
        assert sink.refuse(name(2))
        with pytest.raises(BatchRefusedError, match="b2"):
            made().write(spark.range(1), name(2))
        assert len(rows()) == 1

    def test_a_job_that_was_given_up_and_still_writes_is_refused_when_it_commits(self, spark, made, rows, files):
        assert made().write(spark.range(1), name(1))
        there = files()
        late = made()
        with pytest.raises(BatchRefusedError):
            late.write(meanwhile(spark.range(3), lambda: made().refuse(name(2))), name(2))
        assert len(rows()) == 1
        assert files() == there

    def test_of_two_writers_of_one_batch_the_first_has_written_it(self, spark, made, rows, files):
        assert made().write(spark.range(1), name(1))
        first = []
        late = meanwhile(spark.range(3), lambda: first.append(made().write(spark.range(3), name(2))))
        assert not made().write(late, name(2))
        assert first == [True]
        assert sorted(row["id"] for row in rows()) == [0, 0, 1, 2]

    def test_writers_of_other_queues_hold_nobody_up(self, spark, made, rows):
        assert made().write(spark.range(1), name(1))
        others = [BatchName(f"QM/OTHER{n}/CONSUMER", 1, f"other{n}") for n in range(4)]
        with ThreadPoolExecutor(4) as threads:
            assert all(threads.map(lambda other: made().write(spark.range(2), other), others))
        assert len(rows()) == 9

    def test_parts_of_a_batch_are_all_written_though_they_have_its_number(self, spark, made, rows):
        sink = made()
        assert sink.refuse(name(7))
        parts = [name(7, f"b7-{at}-{at + 1}", (at, at + 1)) for at in (2, 0, 1)]
        for part in parts:
            assert sink.write(spark.range(1), part)
            assert not sink.write(spark.range(1), part)
            assert not sink.refuse(part)
        again = name(7, "b7-3-4", (3, 4))
        assert sink.refuse(again)
        with pytest.raises(BatchRefusedError):
            sink.write(spark.range(1), again)
        assert sink.write(spark.range(1), name(8))
        assert len(rows()) == 4

    def test_no_rows_are_a_batch_too(self, spark, made, rows):
        assert made().write(spark.range(3), name(1))
        assert made().write(spark.range(0), name(2))
        assert not made().write(spark.range(5), name(2))
        assert len(rows()) == 3

    def test_a_queue_is_drained_into_it_once_though_jobs_died_over_a_batch(self, qm, q_name, here, spark, made, rows):
        qm.put_many(q_name, [b"%d" % n for n in range(8)])
        self._die(spark, 2, here | {"max_rows": 4, "sink": made()})
        done = drain(spark, to=made(), max_rows=4, **here)
        assert (done.rows, done.rejected, depth(qm, q_name)) == (8, [], 0)
        assert sorted(int(row["data"]) for row in rows()) == list(range(8))

    def test_an_error_of_the_sink_sets_no_message_aside_though_others_were_written_before(
        self, qm, q_name, here, spark, made, rows, monkeypatch
    ):
        qm.put_many(q_name, [b"%d" % n for n in range(4)])
        full, write = made(), made().write
        taken = []

        def written(frame, batch):
            if taken or frame.count() > 1:
                raise SinkError("no space left")
            taken.append(batch)
            return write(frame, batch)

        monkeypatch.setattr(full, "write", written)
        with pytest.raises(SinkError, match="no space left"):
            drain(spark, to=full, max_rows=4, **here)
        assert len(taken) <= 1
        assert (depth(qm, q_name), qm.reservations(q_name)) == (4 - len(taken), [])
        with qm.open(q_name, "browse") as queue:
            assert queue.get(browse_first=True).backout_count == 0
        assert drain(spark, to=made(), **here).rejected == []
        assert sorted(int(row["data"]) for row in rows()) == [0, 1, 2, 3]

    def _die(self, spark, times, how):
        for _ in range(times):
            with pytest.raises(SystemExit), batches(spark, **how) as waiting, waiting.next():
                raise SystemExit


class TablePlays(Plays):
    """The tests of a sink that is a table, beside the others: ``made`` takes ``partition_by`` and ``merge_schema``."""

    def test_a_column_of_another_type_is_refused_with_both_types_before_a_file_is_written(
        self, spark, made, rows, files
    ):
        assert made().write(spark.range(1), name(1))
        there = files()
        with pytest.raises(SinkError, match=r"column id .*(long|int64|bigint).*string"):
            made(merge_schema=True).write(spark.range(1).selectExpr("cast(id as string) id"), name(2))
        assert files() == there
        assert len(rows()) == 1

    def test_new_columns_are_added_where_that_is_wanted(self, spark, made, rows):
        assert made().write(spark.range(1), name(1))
        wider = spark.range(1).selectExpr("id + 1 as id", "'x' as new")
        with pytest.raises(SinkError, match=r"no column new: merge_schema adds it"):
            made().write(wider, name(2))
        assert made(merge_schema=True).write(wider, name(2))
        assert sorted((row["id"], row["new"]) for row in rows()) == [(0, None), (1, "x")]

    def test_a_partitioned_table_has_every_row_whatever_its_values(self, spark, made, rows):
        values = ["a b", "ü/=%", "..", None]
        frame = spark.createDataFrame([(n, value) for n, value in enumerate(values)], "id long, at string")
        assert made(partition_by=["at"]).write(frame, name(1))
        assert [row["at"] for row in sorted(rows(), key=lambda row: row["id"])] == values

    def test_a_partition_column_that_is_not_there_or_of_an_unfit_type_is_refused(self, spark, made):
        with pytest.raises(SinkError, match=r"partition_by: there is no column at; there are id"):
            made(partition_by=["at"]).write(spark.range(1), name(1))
        with pytest.raises(SinkError, match=r"partition_by: at is double"):
            made(partition_by=["at"]).write(spark.range(1).selectExpr("id", "1.5d as at"), name(1))

    def test_every_type_that_a_queue_s_rows_have_comes_back_as_it_was(self, spark, made, rows):
        frame = spark.sql(
            "select 1 as id, unhex('00FF') as data, array('a') as list, map('k', 1L) as headers, 1.5d as x, "
            "true as ok, timestamp'2024-02-03 04:05:06.000007' as at, date'2024-02-03' as day, "
            "cast(null as int) as nothing"
        )
        assert made().write(frame, name(1))
        (row,) = rows()
        assert (row["data"], row["list"], dict(row["headers"])) == (b"\x00\xff", ["a"], {"k": 1})
        assert (row["x"], row["ok"], row["nothing"], str(row["day"])) == (1.5, True, None, "2024-02-03")
        assert row["at"].timestamp() == pytest.approx(1706900706.000007, abs=1e-6)


class CommitRaces:
    """Tests of sinks that look at the table and then commit; ``module`` is the sink's. Between the two another acts."""

    @pytest.fixture
    def race(self, monkeypatch, module):
        """Has another writer act once, between the last look and the commit of the next write."""

        def race(act):
            looks = []

            def known(mark, batch):
                found = real(mark, batch)
                looks.append(batch)
                if len(looks) == 2:  # the first is before the files are written
                    act()
                return found

            real = module.known
            monkeypatch.setattr(module, "known", known)

        return race

    def test_a_commit_beside_another_job_s_of_the_same_batch_is_none(self, spark, made, rows, files, race):
        assert made().write(spark.range(1), name(1))
        first = []
        race(lambda: first.append(made().write(spark.range(3), name(2))))
        assert not made().write(spark.range(3), name(2))
        assert first == [True]
        assert sorted(row["id"] for row in rows()) == [0, 0, 1, 2]

    def test_a_commit_beside_a_refusal_is_none(self, spark, made, rows, files, race):
        assert made().write(spark.range(1), name(1))
        there = files()
        race(lambda: made().refuse(name(2)))
        with pytest.raises(BatchRefusedError):
            made().write(spark.range(3), name(2))
        assert len(rows()) == 1
        assert files() == there

    def test_a_commit_beside_another_queue_s_is_made(self, spark, made, rows, race):
        assert made().write(spark.range(1), name(1))
        race(lambda: made().write(spark.range(2), BatchName("QM/OTHER/CONSUMER", 1, "other")))
        assert made().write(spark.range(3), name(2))
        assert len(rows()) == 6


class _Late:
    """A frame whose rows are written, but whose writer commits only after something else was done."""

    def __init__(self, frame, act):
        self._frame, self._act = frame, act

    def __getattr__(self, name):
        return getattr(self._frame, name)

    def select(self, *columns):
        return _Late(self._frame.select(*columns), self._act)

    def selectExpr(self, *columns):  # noqa: N802
        return _Late(self._frame.selectExpr(*columns), self._act)

    def toLocalIterator(self, **_):  # noqa: N802
        rows = self._frame.collect()
        self._act()
        return iter(rows)

    def mapInArrow(self, *arguments):  # noqa: N802
        written = self._frame.mapInArrow(*arguments).collect()
        self._act()
        return _Collected(written)


class _Collected:
    def __init__(self, rows):
        self._rows = rows

    def collect(self):
        return self._rows


def meanwhile(frame, act):
    """Returns the frame; between its files and their commit another writer acts."""
    return _Late(frame, act)

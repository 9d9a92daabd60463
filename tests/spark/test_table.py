"""The table that takes a batch once, without a Spark: what writes here is a directory made by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql.types import StructType

import trigmon.spark.file_table
from trigmon.spark.file_table import BatchRefusedError, refuse_batch, staging_of, write_batch


class Frame:
    """Something with a ``write`` as a DataFrame's, which writes ``body`` or fails half way."""

    schema = StructType().add("id", "long")

    def __init__(self, body, fails=False):
        self.body = body
        self.fails = fails
        self.write = self

    def format(self, _name):
        return self

    def partitionBy(self, *_columns):  # noqa: N802
        return self

    def options(self, **_options):
        return self

    def save(self, where):
        directory = Path(where.removeprefix("file:"))
        (directory / "deep").mkdir(parents=True)
        (directory / "deep" / "part").write_text(self.body)
        if self.fails:
            raise OSError("no space left")


def content(table):
    return {path.parent.parent.name: path.read_text() for path in table.glob("batch=*/deep/part")}


def test_a_batch_is_in_the_table_by_its_name_and_a_second_time_it_is_not_written(tmp_path):
    table = tmp_path / "a table, 100%"
    assert write_batch(Frame("one"), table, "b1")
    assert not write_batch(Frame("other"), table, "b1")
    assert write_batch(Frame("two"), table, "b2")
    assert content(table) == {"batch=b1": "one", "batch=b2": "two"}
    assert list(staging_of(table).iterdir()) == []


def test_what_was_half_written_is_not_in_the_table_and_hinders_nobody(tmp_path):
    table = tmp_path / "table"
    with pytest.raises(OSError, match="no space"):
        write_batch(Frame("half", fails=True), table, "b1")
    assert content(table) == {}
    assert write_batch(Frame("whole"), table, "b1")
    assert content(table) == {"batch=b1": "whole"}


def test_a_refused_batch_is_never_taken_and_one_that_is_there_cannot_be_refused(tmp_path):
    table = tmp_path / "table"
    assert refuse_batch(table, "b1")
    assert refuse_batch(table, "b1")
    with pytest.raises(BatchRefusedError, match="batch=b1"):
        write_batch(Frame("late"), table, "b1")
    assert write_batch(Frame("two"), table, "b2")
    assert not refuse_batch(table, "b2")
    assert content(table) == {"batch=b2": "two"}
    assert list(staging_of(table).iterdir()) == []


def test_a_job_that_still_writes_a_batch_when_it_is_refused_is_reported(tmp_path):
    table = tmp_path / "table"

    class Slow(Frame):
        def save(self, where):
            super().save(where)
            assert refuse_batch(table, "b1")

    with pytest.raises(BatchRefusedError):
        write_batch(Slow("late"), table, "b1")
    assert content(table) == {}


def test_a_job_that_begins_to_write_a_batch_while_it_is_refused_hinders_nobody(tmp_path, monkeypatch):
    table = tmp_path / "table"
    plain = trigmon.spark.file_table._sync_tree

    def synced(directory):
        plain(directory)
        with pytest.raises(OSError, match="no space"):
            write_batch(Frame("late", fails=True), table, "b1")

    with monkeypatch.context() as patched:
        patched.setattr("trigmon.spark.file_table._sync_tree", synced)
        assert refuse_batch(table, "b1")
    with pytest.raises(BatchRefusedError):
        write_batch(Frame("late"), table, "b1")
    assert content(table) == {}


@pytest.mark.parametrize("when", ["while it writes", "while it is moved"])
def test_a_job_that_still_writes_a_batch_which_another_was_given_adds_nothing_to_it(tmp_path, monkeypatch, when):
    table = tmp_path / "table"

    def other():
        assert write_batch(Frame("the other's"), table, "b1")

    class Slow(Frame):
        def save(self, where):
            super().save(where)
            if when == "while it writes":
                other()

    if when == "while it is moved":
        exists = iter([other, None])
        plain = trigmon.spark.file_table._sync_tree

        def synced(directory):
            plain(directory)
            if act := next(exists):
                act()

        monkeypatch.setattr("trigmon.spark.file_table._sync_tree", synced)
    assert not write_batch(Slow("the first's"), table, "b1")
    assert content(table) == {"batch=b1": "the other's"}
    assert list(staging_of(table).iterdir()) == []


def test_a_batch_that_was_not_written_is_not_in_the_table(tmp_path):
    class Nothing(Frame):
        def save(self, where):
            pass

    with pytest.raises(FileNotFoundError, match="was not written"):
        write_batch(Nothing(""), tmp_path / "table", "b1")
    assert write_batch(Frame("one"), tmp_path / "table", "b1")

"""The progress line of a job that runs on a real terminal."""

from __future__ import annotations

import os
import pty
import re
import select
import sys

import pytest

from tests.daemons import define
from trigmon.mq.calls import Alter
from trigmon.spark import batches, drain

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("default::ResourceWarning", "default::DeprecationWarning", "default::FutureWarning"),
]
NUMBERS = r"[\d,]+"


class Terminal:
    """A pseudo terminal, and what came to it. In its block it is this process's standard output and error."""

    def __init__(self):
        self.end, far = pty.openpty()
        self.stream = os.fdopen(far, "w")
        self._seen = b""

    def seen(self):
        """All that was written, as it came."""
        while select.select([self.end], [], [], 0)[0]:
            self._seen += os.read(self.end, 65536)
        return self._seen.decode()

    def rewritten(self):
        """The texts of the line in order."""
        return re.findall(r"\r\x1b\[K([^\r\x1b]+)", self.seen())

    def __enter__(self):
        self._before = sys.stdout, sys.stderr
        sys.stdout = sys.stderr = self.stream

    def __exit__(self, *_):
        sys.stdout, sys.stderr = self._before

    def close(self):
        self.stream.close()
        os.close(self.end)


@pytest.fixture
def terminal(monkeypatch):
    made = Terminal()
    monkeypatch.setenv("COLUMNS", "100")
    yield made
    made.close()


@pytest.fixture
def here(shared_daemon, qm, q_name, spark):
    qm.put_many(q_name, [b"%d" % n for n in range(250)])
    return {"queue": q_name, "qmgr": shared_daemon.address}


def test_a_drain_by_hand_rewrites_one_line_with_how_far_it_is(terminal, here, q_name, spark):
    with terminal:
        drain(spark, lambda frame, batch: frame.count(), max_rows=100, **here)
    reported = terminal.rewritten()
    shape = rf"{q_name}: (\d) batch(?:es)?, (\d+) rows, {NUMBERS} rows/s; (\d+) left on the queue"
    seen = [re.match(shape, line).groups() for line in reported]
    assert seen == [("0", "0", "150"), ("1", "100", "50"), ("2", "200", "0"), ("3", "250", "0")]
    held = [re.search(r", (\d+) in reservation \d+$", line) for line in reported]
    assert [found and found[1] for found in held] == ["100", "100", "50", None]
    # The terminal makes a line's end of two; there is one, behind all of it.
    assert terminal.seen().count("\r\n") == 1
    assert terminal.seen().endswith("left on the queue\r\n")


def test_batches_taken_one_by_one_show_the_same_line_and_a_failure_stands_above_it(terminal, here, qm, q_name, spark):
    aside = f"{q_name}.ASIDE"
    define(qm, aside)
    qm.call(Alter(object_type="QLOCAL", name=q_name, attributes={"backout_requeue_q_name": aside}))
    failures = [OSError("the disk is busy")]
    with terminal, batches(spark, max_rows=250, **here) as waiting:
        for batch in waiting:
            with batch:
                if failures:
                    raise failures.pop()
    assert re.search(r"\r\x1b\[Ktrigmon: batch \d+ of .*: AGAIN: OSError: the disk is busy\r\n", terminal.seen())
    assert terminal.rewritten()[-1].startswith(f"{q_name}: 1 batch, 250 rows, ")


def test_a_stream_shows_it_too(terminal, here, q_name, spark, tmp_path):
    into = lambda rows: rows.writeStream.format("parquet").option("path", str(tmp_path / "sink"))  # noqa: E731
    with terminal:
        drain(spark, stream=into, checkpoint=tmp_path / "checkpoint", max_rows=100, **here)
    assert terminal.rewritten()[-1].startswith(f"{q_name}: 3 batches, 250 rows, ")
    assert all(line.startswith(f"{q_name}: ") for line in terminal.rewritten())


def test_the_line_is_no_longer_than_the_terminal_is_wide(terminal, here, spark, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    with terminal:
        drain(spark, lambda frame, batch: None, **here)
    assert {len(line) for line in terminal.rewritten()} == {39}


@pytest.mark.parametrize("which", ["stdout", "stderr"])
def test_where_either_stream_is_no_terminal_nothing_is_written(terminal, here, spark, which, tmp_path):
    with (tmp_path / "log").open("w") as log, terminal:
        setattr(sys, which, log)
        drain(spark, lambda frame, batch: None, **here)
    assert (terminal.seen(), (tmp_path / "log").read_text()) == ("", "")


def test_a_job_that_tells_of_its_batches_itself_has_no_line(terminal, here, spark):
    with terminal:
        drain(spark, lambda frame, batch: None, progress=lambda batch: print("mine"), **here)
    assert terminal.seen() == "mine\r\n"

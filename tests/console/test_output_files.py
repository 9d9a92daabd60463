"""The files of a run's output, and that a key of trigmon top reads them so."""

from __future__ import annotations

import io
import os

import pytest

from trigmon.console import actions, output_files
from trigmon.mq.calls import RecordRun


def test_the_end_of_a_long_file_begins_with_a_line(tmp_path):
    lines = [f"line {number} ä\n" for number in range(20_000)]
    (tmp_path / "stdout").write_text("".join(lines))
    tail = output_files.tail_of(str(tmp_path), "stdout")
    assert tail.is_cut
    assert tail.text.splitlines() == [line.rstrip() for line in lines[-len(tail.text.splitlines()) :]]
    assert tail.end == (tmp_path / "stdout").stat().st_size


def test_a_character_that_is_half_written_comes_when_it_is_whole(tmp_path):
    file = tmp_path / "stdout"
    whole = "aä".encode()
    file.write_bytes(whole[:2])
    first = output_files.read_from(str(tmp_path), "stdout", 0)
    assert (first.text, first.end) == ("a", 1)
    file.write_bytes(whole)
    assert output_files.read_from(str(tmp_path), "stdout", first.end) == ("ä", 3, False)


def test_bytes_that_are_no_text_are_shown_and_passed(tmp_path):
    (tmp_path / "stderr").write_bytes(b"\xff\xfeok")
    piece = output_files.read_from(str(tmp_path), "stderr", 0)
    assert (piece.text, piece.end) == ("\ufffd\ufffdok", 4)


def test_a_link_and_a_pipe_are_not_read(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("secret")
    (tmp_path / "stdout").symlink_to(secret)
    os.mkfifo(tmp_path / "stderr")
    for stream in output_files.STREAMS:
        with pytest.raises(OSError, match=r"no file|symbolic"):
            output_files.tail_of(str(tmp_path), stream)


def test_what_is_not_on_this_host_says_so(tmp_path):
    with pytest.raises(OSError, match="is not on this host"):
        output_files.tail_of(str(tmp_path / "none"), "stdout")
    with pytest.raises(OSError, match="wrote no files"):
        output_files.tail_of("", "stdout")


@pytest.mark.parametrize("text", ["", "\n", "one", "one\n", "one\ntwo", "one\ntwo\n", "\n\n\n", "a\n" * 50])
def test_the_last_lines_are_those_that_a_list_of_lines_ends_with(text, monkeypatch):
    monkeypatch.setattr(output_files, "PART", 3)
    lines = text.splitlines(keepends=True)
    for count in range(6):
        file = io.BytesIO(text.encode())
        file.seek(output_files.start_of_last_lines(file, count))
        assert file.read().decode() == "".join(lines[-count:] if count else [])


@pytest.fixture
def logs_of(shared_daemon, tmp_path):
    """Returns what ``l`` in trigmon top shows of a run that wrote into the test's directory."""

    def logs(run_id, **fields):
        with shared_daemon.connect() as qm:
            record = {"state": "exited", "q_name": "Q", "directory": str(tmp_path)}
            qm.call(RecordRun(run_id=run_id, record=record | fields))
            return actions.logs(qm, {"run_id": run_id})

    return logs


def test_a_key_shows_the_last_lines_of_a_file_of_any_length(logs_of, tmp_path):
    with (tmp_path / "stdout").open("wb") as file:
        file.truncate(1 << 40)  # a hole: nobody reads that
        file.seek(0, os.SEEK_END)
        file.write(b"\n".join(b"line %d" % number for number in range(1000)))
    shown = logs_of("l1").splitlines()
    assert shown[-1] == "line 999"
    assert len(shown) < 500


def test_a_key_follows_no_link_waits_for_no_pipe_and_says_so(logs_of, tmp_path):
    (tmp_path / "secret").write_text("a secret")
    (tmp_path / "stdout").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "stderr")
    shown = logs_of("l2", stderr_tail="no room")
    assert "a secret" not in shown
    assert "stderr is no file" in shown
    assert shown.endswith("-- stderr, from the record --\nno room")

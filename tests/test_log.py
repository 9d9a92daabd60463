"""The log in its three forms, and its restraint."""

import io
import json
import logging
import os
import socket

import pytest
import structlog

from trigmon import log


@pytest.fixture(autouse=True)
def as_before():
    """Restores the log's configuration after the test."""
    handlers, level = logging.root.handlers[:], logging.root.level
    yield
    structlog.reset_defaults()
    logging.root.handlers[:], logging.root.level = handlers, level


def test_json_is_an_object_a_line_with_utc_time_and_a_traceback_inside():
    out = io.StringIO()
    log.configure("info", "json", out)
    log.logger(qmgr="QM1").info("started", data=os.fspath("/x"))
    log.logger().debug("not logged")
    try:
        raise ValueError("why")
    except ValueError:
        log.logger().exception("it failed")
    first, second = (json.loads(line) for line in out.getvalue().splitlines())
    assert first.pop("time").endswith("Z")
    assert first == {"event": "started", "level": "info", "qmgr": "QM1", "data": "/x"}
    assert "ValueError: why" in second["exception"]


def test_text_is_a_line_a_person_reads():
    out = io.StringIO()
    log.configure("info", "auto", out)
    assert out.getvalue() == ""
    log.configure("info", "text", out)
    log.logger(q_name="ORDERS").warning("full")
    assert "full" in out.getvalue()
    assert "q_name=ORDERS" in out.getvalue()
    assert "\x1b" not in out.getvalue()


def test_what_libraries_log_takes_the_same_road_from_warnings_on():
    out = io.StringIO()
    log.configure("info", "json", out)
    logging.getLogger("asyncio").warning("slow by %d", 3)
    logging.getLogger("apscheduler").info("chatter")
    (line,) = (json.loads(line) for line in out.getvalue().splitlines())
    assert (line["event"], line["library"], line["level"]) == ("slow by 3", "asyncio", "warning")


def test_what_opentelemetry_logs_of_each_batch_is_logged_once_a_minute():
    out = io.StringIO()
    log.configure("info", "json", out)
    library = logging.getLogger("opentelemetry.exporter.otlp")
    for number in range(6):
        library.warning("Transient error, try %d", number)
    library.error("Failed to export")
    (line,) = (json.loads(line) for line in out.getvalue().splitlines())
    assert (line["event_name"], line["why"]) == ("spans_not_sent", "Transient error, try 0")


def test_the_journal_gets_its_own_fields(tmp_path, monkeypatch):
    path = tmp_path / "journal"
    monkeypatch.setattr(log, "JOURNAL_SOCKET", str(path))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as journal, (tmp_path / "stderr").open("w") as stderr:
        journal.bind(str(path))
        status = os.fstat(stderr.fileno())
        monkeypatch.setenv("JOURNAL_STREAM", f"{status.st_dev}:{status.st_ino}")
        log.configure("info", "auto", stderr)
        log.logger(q_name="ORDERS").error("two lines", why="a\nb")
        datagram = journal.recv(65536)
    assert b"PRIORITY=3\n" in datagram
    assert b"SYSLOG_IDENTIFIER=trigmon\n" in datagram
    assert b"TRIGMON_Q_NAME=ORDERS\n" in datagram
    assert b"TRIGMON_WHY\n\x03\0\0\0\0\0\0\0a\nb\n" in datagram


def test_without_a_journal_the_line_goes_to_the_stream(tmp_path, monkeypatch):
    monkeypatch.setattr(log, "JOURNAL_SOCKET", str(tmp_path / "nobody"))
    out = io.StringIO()
    log.configure("info", "journal", out)
    log.logger().info("logged", to="all")
    assert out.getvalue() == "logged to=all\n"


def test_an_event_is_logged_so_often_a_second_and_then_counted():
    out = io.StringIO()
    log.configure("info", "json", out)
    now = [100.0]
    seldom = log.Seldom(log.logger(), times=2, now=lambda: now[0])
    for _ in range(10):
        seldom.warning("cut", peer="x")
    seldom.warning("another")
    now[0] += 1
    seldom.warning("cut", peer="y")
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [line["event"] for line in lines] == ["cut", "cut", "another", "cut"]
    assert lines[-1]["left_out"] == 8
    assert "left_out" not in lines[0]

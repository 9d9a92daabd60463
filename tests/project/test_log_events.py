"""Each sentence that daemon, monitor and launchers log has a stable name, and the log writes both."""

from __future__ import annotations

import ast
import io
import json
import logging
import re
from pathlib import Path

import structlog

import trigmon
from trigmon import log
from trigmon.log_events import EVENT_NAMES

PACKAGE = Path(trigmon.__file__).parent
ALERTS = (PACKAGE.parent / "docs" / "how-to" / "alerts.md").read_text()
LEVELS = ("debug", "info", "warning", "error", "critical", "exception")
OWN_NAMES = {PACKAGE / "server" / "event_log.py", PACKAGE / "log_events.py"}
FILES = [path for path in PACKAGE.rglob("*.py") if path not in OWN_NAMES]


def logged():
    """Returns the sentences that stand as text in a call of a logger."""
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in LEVELS
                and re.search(r"log$|seldom|logger\(", ast.unparse(node.func.value))
                and node.args
                and isinstance(node.args[0], ast.Constant)
            ):
                yield node.args[0].value


def test_every_sentence_has_a_name_and_every_name_a_sentence():
    assert set(logged()) - set(EVENT_NAMES) == set()
    source = "".join(path.read_text() for path in FILES)
    by_state = {"run held", "run joined", "run cancelled", "run failed"}
    assert [sentence for sentence in EVENT_NAMES if f'"{sentence}"' not in source and sentence not in by_state] == []


def test_a_name_is_one_of_a_kind_and_a_word_that_a_filter_can_hold():
    assert len(set(EVENT_NAMES.values())) == len(EVENT_NAMES)
    assert [name for name in EVENT_NAMES.values() if not re.fullmatch(r"[a-z]+(_[a-z]+)*", name)] == []


def test_a_line_has_the_name_beside_the_sentence():
    handlers, level = logging.root.handlers[:], logging.root.level
    out = io.StringIO()
    try:
        log.configure("info", "json", out)
        log.logger().info("program ended", run="r")
        log.logger().info("something else")
    finally:
        structlog.reset_defaults()
        logging.root.handlers[:], logging.root.level = handlers, level
    first, second = map(json.loads, out.getvalue().splitlines())
    assert (first["event"], first["event_name"]) == ("program ended", "program_ended")
    assert "event_name" not in second


def test_the_alerts_name_events_that_there_are():
    source = "".join(path.read_text() for path in PACKAGE.rglob("*.py"))
    rows = re.findall(r"^\| (`.*?) \|", ALERTS, re.MULTILINE)
    named = [*re.findall(r"`([a-z_]+)`", " ".join(rows)), *re.findall(r"EVENT_NAME=(\w+)", ALERTS)]
    assert len(named) > 20
    assert [name for name in named if f'"{name}"' not in source] == []


def test_the_search_of_the_alerts_finds_a_line_of_the_log():
    (pattern,) = re.findall(r"^grep -E '(.*)' trigmon.log$", ALERTS, re.MULTILINE)
    out = io.StringIO()
    handlers, level = logging.root.handlers[:], logging.root.level
    try:
        log.configure("info", "json", out)
        log.logger().warning("puts are refused: the disk is nearly full", free=1)
        log.logger().info("program ended", run="r")
    finally:
        structlog.reset_defaults()
        logging.root.handlers[:], logging.root.level = handlers, level
    first, second = out.getvalue().splitlines()
    assert re.search(pattern, first)
    assert not re.search(pattern, second)

"""``trigmon bridge check``: a line a check, what helps, and the exit status."""

# ruff: noqa: F401, F811 - fixtures are imported
from __future__ import annotations

import pytest

from tests.bridge.conftest import NEEDS_IBMMQ
from tests.bridge.queues_elsewhere import (
    INITIATION,
    SETTINGS,
    by_name,
    library_directory,
    pair,
)
from tests.cli.conftest import objects, run_cli
from tests.daemons import define
from trigmon.mq.calls import Alter, Delete

pytestmark = NEEDS_IBMMQ
COMMANDS = "SYSTEM.ADMIN.COMMAND.QUEUE"


@pytest.fixture
def there(by_name):
    """Yields a connection to the queue manager that plays the real MQ, with an initiation queue."""
    with by_name[1].connect() as qm:
        define(qm, INITIATION)
        qm.call(Alter(object_type="QMGR", name="", attributes={"dead_letter_q_name": "SYSTEM.DEAD.LETTER.QUEUE"}))
        yield qm
        qm.call(Delete(object_type="QLOCAL", name=INITIATION))


@pytest.fixture
def check(pair, tmp_path):
    """Returns the check of a bridge on this side's command line."""
    config = tmp_path / "trigmon.yaml"
    config.write_text(SETTINGS)
    ours = {name: value for name, value in pair[0].env.items() if name.startswith("TRIGMON_")}
    return lambda *more: run_cli("bridge", "check", *(more or ("REAL",)), "--config", str(config), env=ours)


def failed(result):
    """Returns the lines of what failed, each with its remedy."""
    assert result.exit_code == 1, result.stdout + result.stderr
    return [part for part in result.stdout.replace("\n          ", " ").splitlines() if part.startswith("failed")]


def test_every_check_is_ok_where_nothing_is_wrong(there, check):
    result = check()
    assert result.exit_code == 0, result.stdout
    rows = objects(check("REAL", "--output", "json"))
    assert [row["check"] for row in rows] == [
        "package ibmmq and the MQI's library",
        "connection",
        "queue manager",
        f"initiation queue {INITIATION}",
        "dead-letter queue",
        "command server",
        f"status of {INITIATION}",
        "clock",
    ]
    assert {row["outcome"] for row in rows} == {"ok"}


def test_an_initiation_queue_that_cannot_be_used_is_named_with_what_helps(there, check):
    there.call(Alter(object_type="QLOCAL", name=INITIATION, attributes={"inhibit_get": "inhibited"}))
    (line,) = failed(check())
    assert "GET(DISABLED) remedy: ALTER QLOCAL(PAY.INIT) GET(ENABLED)" in line
    there.call(Alter(object_type="QLOCAL", name=INITIATION, attributes={"inhibit_get": "allowed"}))
    with there.open(INITIATION, "input_exclusive"):
        (line,) = failed(check())
    assert "2042" in line
    assert "exclusively" in line


def test_a_blank_dead_letter_queue_and_a_silent_command_server_fail_and_the_rest_goes_on(there, check):
    there.call(Alter(object_type="QMGR", name="", attributes={"dead_letter_q_name": ""}))
    there.call(Alter(object_type="QLOCAL", name=COMMANDS, attributes={"inhibit_get": "inhibited"}))
    try:
        result = check("REAL", "--timeout", "0.1")
    finally:
        there.call(Alter(object_type="QLOCAL", name=COMMANDS, attributes={"inhibit_get": "allowed"}))
    lines = failed(result)
    assert [line.split(":")[0].split(maxsplit=1)[1] for line in lines] == [
        "dead-letter queue",
        "command server",
        f"status of {INITIATION}",
    ]
    assert "ok        clock" in result.stdout


def test_without_a_connection_the_other_checks_are_not_tried(there, check, tmp_path, pair):
    other = tmp_path / "other.yaml"
    other.write_text(SETTINGS.replace("MQREAL", "NOWHERE"))
    ours = {name: value for name, value in pair[0].env.items() if name.startswith("TRIGMON_")}
    result = run_cli("bridge", "check", "REAL", "--config", str(other), env=ours)
    (line,) = failed(result)
    assert "connection" in line
    assert "2059" in line
    assert "listener" in line
    assert result.stdout.count("not tried") == 6

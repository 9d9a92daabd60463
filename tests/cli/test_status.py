"""``trigmon status``: what needs attention, also where no call is answered."""

from __future__ import annotations

import json
import re
import socket
import threading

import pytest

from tests.cli.conftest import Trigmon, objects, run_cli
from trigmon.mq.replies import Refused
from trigmon.wire import codec

AWAY = Refused(reason=2345, about="group G waits for its database: connection refused")


@pytest.fixture
def member(tmp_path):
    """Listens as a member of a group does that has lost its database; its address."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "mq.sock"))
        listener.listen()
        thread = threading.Thread(target=refuse, args=(listener,))
        thread.start()
        yield f"unix:{tmp_path / 'mq.sock'}"
        thread.join()


def refuse(listener):
    connection, _ = listener.accept()
    with connection:
        connection.recv(65536)
        connection.sendall(codec.encode_welcome(AWAY))


def test_a_member_that_waits_for_its_database_is_what_needs_attention(member):
    done = run_cli("--qmgr", member, "status")
    assert done.exit_code != 0
    assert "database" in done.stdout.splitlines()[2]
    assert "no call is answered: " in done.stdout and AWAY.about in done.stdout


def test_so_it_is_in_json(member):
    done = run_cli("--qmgr", member, "status", "--output", "json")
    (item,) = json.loads(done.stdout)["attention"]
    assert (item["kind"], item["since_time"]) == ("database", None)
    assert (done.exit_code, AWAY.about in done.stderr) == (run_cli("--qmgr", "unix:/none", "status").exit_code, True)


def test_status_shows_the_queue_manager_and_the_monitors_of_initiation_queues(trigmon: Trigmon):
    trigmon("queue", "define", "OB.ST", "initiation_q_name=SYSTEM.DEFAULT.INITIATION.QUEUE")
    (status,) = objects(trigmon("status", "--output", "json"))
    assert status["q_mgr_name"] == "QM1"
    assert "SYSTEM.DEFAULT.INITIATION.QUEUE" in [queue["name"] for queue in status["initiation_queues"]]
    table = trigmon("status")
    assert "SYSTEM.DEFAULT.INITIATION.QUEUE" in table.stdout
    assert "no monitor reads SYSTEM.DEFAULT.INITIATION.QUEUE" in table.stderr


def test_the_attributes_of_the_queue_manager_are_shown_by_a_command_of_their_own(trigmon: Trigmon):
    (shown,) = objects(trigmon("qmgr", "show", "--output", "json"))
    assert (shown["name"], "trigger_interval" in shown) == ("QM1", True)
    assert "trigger_interval" not in trigmon("status").stdout


def test_free_space_has_a_unit_and_is_a_number_of_bytes_in_json(trigmon: Trigmon):
    (status,) = objects(trigmon("status", "--output", "json"))
    assert status["disk_free_bytes"] > 0
    (line,) = [line for line in trigmon("status").stdout.splitlines() if line.startswith("disk_free")]
    assert re.fullmatch(r"disk_free +\d+(\.\d)? [KMGT]iB", line)


def test_what_needs_attention_stands_first_in_status(trigmon: Trigmon):
    assert trigmon("status").stdout.splitlines()[0] == "needs attention  nothing"
    trigmon("queue", "define", "OB.NEARLY", "MAXDEPTH=1")
    trigmon("put", "OB.NEARLY", "m")
    (status,) = objects(trigmon("status", "--output", "json"))
    (item,) = status["attention"]
    assert (item["kind"], item["name"]) == ("nearly_full", "OB.NEARLY")
    lines = trigmon("status").stdout.splitlines()
    assert lines[0].startswith("needs attention  1: ")
    assert lines[2].split()[:2] == ["OB.NEARLY", "nearly_full"]
    trigmon("queue", "delete", "OB.NEARLY", "--purge")


def test_nobody_there_is_exit_6_with_the_remedy():
    result = run_cli("status", "--qmgr", "NOBODY")
    assert (result.exit_code, result.stdout) == (6, "")
    assert "MQRC_Q_MGR_NOT_AVAILABLE (2059)" in result.stderr
    assert "trigmon run" in result.stderr

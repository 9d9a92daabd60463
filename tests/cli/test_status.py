"""trigmon status where no call is answered."""

import json
import socket
import threading

import pytest

from tests.cli.conftest import run_cli
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

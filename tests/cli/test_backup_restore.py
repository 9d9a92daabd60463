"""Backup, restore, check, dump and load by the command line, against a queue manager that serves."""

import base64
import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

from tests.cli.conftest import objects, run_cli
from tests.daemons import Daemon, define
from trigmon.mq.descriptors import MessageDescriptor


@pytest.fixture
def queue(shared_daemon):
    name = f"Q.{os.urandom(6).hex().upper()}"
    with shared_daemon.connect() as qm:
        define(qm, name, max_q_depth=99_999)
    return name


@pytest.fixture
def home(tmp_path):
    """Returns an environment with a place of its own for queue managers."""
    return {"TRIGMON_HOME": str(tmp_path / "home")}


def put(daemon, queue, *bodies, **words):
    with daemon.connect() as qm, qm.open(queue, "output", "set_all_context") as target:
        for body in bodies:
            target.put(body, **words)


def bodies(daemon, queue):
    with daemon.connect() as qm, qm.open(queue, "browse") as source:
        return [message.data for message in source.browse()]


def test_a_backup_is_restored_as_another_queue_manager_which_serves_it(trigmon, shared_daemon, queue, home, tmp_path):
    put(shared_daemon, queue, "one", "two", persistence="persistent")
    put(shared_daemon, queue, "not kept", persistence="not_persistent")
    file = tmp_path / "backup"
    (made,) = objects(trigmon("backup", str(file), "--output", "json"))
    assert (made["q_mgr_name"], made["size"] < file.stat().st_size) == ("QM1", True)
    assert trigmon("check", "--store", str(file)).exit_code == 0
    refused = run_cli("restore", str(file), "--qmgr", "QM2", env=home)
    assert "give --as QM2" in refused.stderr
    assert "QM2 is restored in" in run_cli("restore", str(file), "--as", "QM2", env=home).stdout
    second = Daemon(home["TRIGMON_HOME"], "QM2").start()
    try:
        assert bodies(second, queue) == [b"one", b"two"]
        refused = run_cli("restore", str(file), "--as", "QM2", "--replace", env=home)
        assert "stop the queue manager" in refused.stderr
        assert "back it up and check the backup" in run_cli("check", "--store", str(second.data), env=home).stderr
    finally:
        second.end()
    assert "--replace keeps it" in run_cli("restore", str(file), "--as", "QM2", env=home).stderr
    assert run_cli("check", "--store", str(second.data), env=home).exit_code == 0


def test_a_backup_goes_through_a_pipe(shared_daemon, queue, home):
    put(shared_daemon, queue, "one", persistence="persistent")
    made = subprocess.run(
        [sys.executable, "-m", "trigmon", "backup", "-"], env=shared_daemon.env, capture_output=True, check=True
    )
    restored = subprocess.run(
        [sys.executable, "-m", "trigmon", "restore", "-", "--as", "QM3"],
        env={**os.environ, **home},
        input=made.stdout,
        capture_output=True,
        check=False,
    )
    assert restored.returncode == 0, restored.stderr
    assert b"QM3 is restored" in restored.stdout


def test_a_file_that_exists_is_not_overwritten(trigmon, tmp_path):
    file = tmp_path / "backup"
    file.write_text("precious")
    assert "name another file" in trigmon("backup", str(file)).stderr
    assert file.read_text() == "precious"


def test_a_backup_that_cannot_be_written_leaves_no_file(trigmon, tmp_path):
    assert trigmon("backup", str(tmp_path / "no" / "backup")).exit_code != 0
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_backup_is_refused_by_check_and_restore(trigmon, home, tmp_path):
    file = tmp_path / "backup"
    trigmon("backup", str(file))
    damaged = bytearray(file.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    file.write_bytes(damaged)
    checked = run_cli("check", "--store", str(file), "--output", "json", env=home)
    assert (checked.exit_code, json.loads(checked.stdout)["finding"]) == (
        1,
        "the backup is damaged: its content does not match its checksum",
    )
    refused = run_cli("restore", str(file), "--as", "QM4", env=home)
    assert (refused.exit_code, "nothing was changed" in refused.stderr) == (1, True)
    assert run_cli("restore", str(file), "--as", "QM4", "--accept-damage", env=home).exit_code == 0


def test_a_file_of_something_else_is_no_backup(home, tmp_path):
    file = tmp_path / "text"
    file.write_text("no backup" * 100)
    assert "this is no backup of trigmon" in run_cli("restore", str(file), env=home).stderr


def test_repair_is_for_a_directory(home, tmp_path):
    file = tmp_path / "text"
    file.write_text("no backup")
    assert "--repair is for a data directory" in run_cli("check", "--store", str(file), "--repair", env=home).stderr


def test_a_store_that_can_be_repaired_is_whole_behind_it(home, tmp_path):
    daemon = Daemon(home["TRIGMON_HOME"], "QM5")
    daemon.home.mkdir()
    daemon.start()
    with daemon.connect() as qm:
        define(qm, "Q")
        qm.put("Q", "precious", persistence="persistent")
    daemon.stop()
    path = daemon.data / "qm.db"
    damaged = path.read_bytes().replace(b"precious", b"PRECIOUS")
    path.write_bytes(damaged)
    checked = run_cli("check", "--store", str(daemon.data), env=home)
    assert (checked.exit_code, "does not match its checksum" in checked.stdout) == (1, True)
    assert "or give --repair" in checked.stderr
    run_cli("check", "--store", str(daemon.data), "--repair", env=home)
    daemon.start()
    assert bodies(daemon, "Q") == []
    daemon.end()


# -- dump and load --------------------------------------------------------------------------------------------

WORDS = {
    "msg_id": b"\x01" * 24,
    "correl_id": b"\xff" * 24,
    "priority": 7,
    "persistence": "persistent",
    "format": "ORDER",
    "reply_to_q": "ANSWERS",
    "user_identifier": "alice",
    "put_appl_name": "shop",
    "put_ms": 1_000_000_000_000,
    "accounting_token": b"\x16\x01",
    "group_id": b"G" * 24,
    "msg_flags": "msg_in_group",
    "set_all_context": True,
}


def test_what_was_dumped_is_loaded_equal(trigmon, shared_daemon, queue, tmp_path):
    put(shared_daemon, queue, "text", b"\xff\x00bytes", "", **{**WORDS, "expiry_tenths": 900_000})
    dumped = trigmon("dump", queue)
    assert dumped.stderr == f"3 messages copied from {queue}\n"
    rows = [json.loads(line) for line in dumped.stdout.splitlines()]
    assert [row.get("data") for row in rows] == ["text", None, ""]
    assert base64.b64decode(rows[1]["data_base64"]) == b"\xff\x00bytes"
    assert set(rows[0]["descriptor"]) == set(MessageDescriptor.__struct_fields__)
    file = tmp_path / "dump"
    file.write_text(dumped.stdout)
    assert trigmon("dump", queue, "--remove").stderr == f"3 messages taken off {queue}\n"
    assert bodies(shared_daemon, queue) == []
    (done,) = objects(trigmon("load", str(file), "--output", "json"))
    assert done == {"messages": 3}
    again = [json.loads(line) for line in trigmon("dump", queue).stdout.splitlines()]
    for row in (*rows, *again):
        assert 0 < row["descriptor"].pop("expiry") <= 900_000
    assert again == rows


def test_backout_counts_begin_anew(trigmon, shared_daemon, queue, tmp_path):
    put(shared_daemon, queue, "m")
    with shared_daemon.connect() as qm, qm.open(queue, "input_shared") as source:
        source.get(syncpoint=True)
        qm.backout()
    file = tmp_path / "dump"
    file.write_text(trigmon("dump", queue, "--remove").stdout)
    assert json.loads(file.read_text())["descriptor"]["backout_count"] == 2 - 1
    trigmon("load", str(file))
    assert json.loads(trigmon("dump", queue).stdout)["descriptor"]["backout_count"] == 0


def test_several_queues_stand_in_one_dump_and_may_go_to_another(trigmon, shared_daemon, queue, tmp_path):
    other = f"{queue}.B"
    with shared_daemon.connect() as qm:
        define(qm, other)
    put(shared_daemon, queue, "a", "b")
    put(shared_daemon, other, "c")
    file = tmp_path / "dump"
    file.write_text(trigmon("dump", queue, other, "--count", "1", "--remove").stdout)
    assert (bodies(shared_daemon, queue), bodies(shared_daemon, other)) == ([b"b"], [])
    trigmon("load", str(file), "--queue", other)
    assert bodies(shared_daemon, other) == [b"a", b"c"]


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("{", "truncated"),
        ("[]", "Expected `object`"),
        ("{}", "'descriptor' is missing"),
        ('{"q_name": "Q", "descriptor": {}}', "'data_base64' is missing"),
        ('{"q_name": "Q", "descriptor": {"color": 1}, "data": ""}', "unknown field color"),
        ('{"q_name": "Q", "descriptor": {"msg_id": "xyz"}, "data": ""}', "non-hexadecimal"),
        ('{"q_name": "Q", "descriptor": {"priority": "high"}, "data": ""}', "Expected `int`"),
    ],
)
def test_a_line_of_another_form_is_refused_with_its_number_and_nothing_is_put(
    trigmon, shared_daemon, queue, tmp_path, line, what
):
    put(shared_daemon, queue, "good")
    file = tmp_path / "dump"
    good = trigmon("dump", queue).stdout
    file.write_text(f"{good}\n{line}\n")
    refused = trigmon("load", str(file), "--queue", queue)
    assert refused.exit_code == 1
    assert "line 3 is not as trigmon dump writes it" in refused.stderr
    assert what in refused.stderr
    assert bodies(shared_daemon, queue) == [b"good"]


def test_a_load_that_stops_says_how_to_go_on(trigmon, shared_daemon, queue, tmp_path):
    put(shared_daemon, queue, *(f"{number}" for number in range(250)))
    file = tmp_path / "dump"
    file.write_text(trigmon("dump", queue, "--remove").stdout)
    trigmon("queue", "alter", queue, "MAXDEPTH=210")
    stopped = trigmon("load", str(file))
    assert "200 messages are put and committed; --skip 200 puts the rest" in stopped.stderr
    trigmon("queue", "alter", queue, "MAXDEPTH=999")
    trigmon("load", str(file), "--skip", "200")
    assert bodies(shared_daemon, queue) == [b"%d" % number for number in range(250)]


def test_a_time_later_than_now_is_refused_and_the_reason_names_utc(home, tmp_path):
    file, archive = tmp_path / "backup", tmp_path / "archive"
    file.write_bytes(b"")
    archive.mkdir()
    until = (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M")
    refused = run_cli("restore", str(file), "--journal", str(archive), "--until", until, env=home)
    assert "later than now: a time is UTC unless it ends with its offset" in refused.stderr
    taken = run_cli("restore", str(file), "--journal", str(archive), "--until", f"{until}+02:00", env=home)
    assert "later than now" not in taken.stderr

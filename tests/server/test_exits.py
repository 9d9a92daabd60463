"""How ``trigmon run`` and ``trigmon monitor`` end: each row of the table that their units are held to."""

import contextlib
import os
import resource
import signal
import socket
import subprocess
import sys

import pytest

import trigmon
from tests.daemons import define
from tests.waiting import until
from trigmon.server.exit_status import EXITS, FAILED, IN_USE, MISCONFIGURED, STOPPED, STORE_BROKEN, STORE_LOST


def ends(one, *arguments, **popen):
    """The exit status of one that cannot start."""
    return one.launch(*arguments, **popen).wait()


def with_file(one, name, text):
    path = one.home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def stopped(one, tmp_path):
    one.start()
    return one.stop()


def stopped_while_it_starts(one, tmp_path):
    one.launch()
    until(lambda: one.process.poll() is not None or (one.data / "lock").exists())
    return one.stop()


def wrong_setting(one, tmp_path):
    one.settings["server.max_connections"] = "many"
    return ends(one)


def wrong_definition(one, tmp_path):
    one.settings["qmgr.definitions"] = with_file(one, "q.yaml", "- qlocal: A\n  max_q_dept: 7\n")
    return ends(one)


def unknown_option(one, tmp_path):
    return ends(one, "--no-such-option")


def anothers_store(one, tmp_path):
    one.start()
    one.stop()
    one.name = "QM2"
    return ends(one, "--data", str(one.data))


def later_store(one, tmp_path):
    import apsw

    one.start()
    one.stop()
    database = apsw.Connection(str(one.data / "qm.db"))
    database.execute("PRAGMA user_version = 999")
    database.close()
    return ends(one)


def data_is_a_file(one, tmp_path):
    with_file(one, "QM1", "")
    return ends(one)


def no_extra_group(one, tmp_path):
    one.settings["server.socket_group"] = "no-such-group"
    return ends(one)


def data_in_use(one, tmp_path):
    one.start()
    first, env = one.process, one.env | {"TRIGMON_RUNTIME": str(tmp_path / "run")}
    try:
        return ends(one, env=env)
    finally:
        first.terminate()
        first.wait()


def port_in_use(one, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        one.settings["server.tcp"] = f"127.0.0.1:{taken.getsockname()[1]}"
        return ends(one)


def damaged_store(one, tmp_path):
    one.start()
    one.stop()
    (one.data / "qm.db").write_bytes(b"SQLite format 3\0" + os.urandom(100_000))
    return ends(one)


def missing_store(one, tmp_path):
    one.start()
    one.stop()
    (one.data / "qm.db").unlink()
    return ends(one)


def no_room(one, tmp_path):
    """As on a disk with room for the log's lines, and for no store."""
    return ends(one, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)))


def socket_cannot_be_made(one, tmp_path):
    if (
        os.geteuid() != 0
        or subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", tmp_path], check=False).returncode
    ):
        pytest.skip("no file system can be mounted here")
    try:
        return ends(one, env=one.env | {"TRIGMON_RUNTIME": str(tmp_path / "run")})
    finally:
        subprocess.run(["umount", "--lazy", tmp_path], check=True)


def store_fails(one, tmp_path):
    one.start()
    with pytest.raises(trigmon.ConnectionBroken), one.connect() as qm:
        define(qm, "Q", def_persistence="persistent")
        size = max(file.stat().st_size for file in one.data.iterdir())
        resource.prlimit(one.process.pid, resource.RLIMIT_FSIZE, (size, size))
        with qm.open("Q", "output") as q:
            for _ in range(20_000):
                q.put(b"x" * 10_000)
    return one.wait()


def killed(one, tmp_path):
    one.start()
    one.kill()
    return one.process.returncode


def unreadable_definitions(one, tmp_path):
    one.settings["qmgr.definitions"] = "/proc/self/mem"  # a regular file that answers EIO
    return ends(one)


def unreadable_settings(one, tmp_path):
    return ends(one, env=one.env | {"TRIGMON_CONFIG": "/proc/self/mem"})


MET = [
    (stopped, STOPPED),
    (stopped_while_it_starts, STOPPED),
    (wrong_setting, MISCONFIGURED),
    (wrong_definition, MISCONFIGURED),
    (unknown_option, MISCONFIGURED),
    (anothers_store, MISCONFIGURED),
    (later_store, MISCONFIGURED),
    (data_is_a_file, MISCONFIGURED),
    (no_extra_group, MISCONFIGURED),
    (data_in_use, IN_USE),
    (port_in_use, IN_USE),
    (damaged_store, STORE_LOST),
    (missing_store, STORE_LOST),
    (no_room, STORE_BROKEN),
    (socket_cannot_be_made, STORE_BROKEN),
    (store_fails, STORE_BROKEN),
    (unreadable_definitions, STORE_BROKEN),
    (unreadable_settings, FAILED),
    (killed, -signal.SIGKILL),
]


@pytest.mark.parametrize(("met", "status"), MET)
def test_a_queue_manager_ends_with_what_its_unit_expects(daemon, tmp_path, met, status):
    assert met(daemon(start=False), tmp_path) == status


def test_every_status_of_the_table_was_met_here():
    assert {status for _, status in MET} == {each.status for each in EXITS if each.program == "run"}


@contextlib.contextmanager
def monitor(one, *arguments, **env):
    """A monitor's process."""
    argv = [sys.executable, "-m", "trigmon", "monitor", *arguments]
    with subprocess.Popen(argv, env=one.env | env, stderr=subprocess.PIPE, text=True) as process:
        yield process


@pytest.mark.parametrize(
    ("arguments", "env", "status"),
    [
        ((), {"TRIGMON_MONITOR_INSTANCES": "many"}, MISCONFIGURED),
        ((), {"TRIGMON_CONFIG": "/proc/self/mem"}, FAILED),
        (("--data", "/proc/no-place"), {}, FAILED),
        (("--initq", "NOT.THERE"), {}, 3),
        (("--initq", "TAKEN.INITQ"), {}, 5),
    ],
)
def test_a_monitor_ends_with_what_its_unit_expects(shared_daemon, arguments, env, status):
    with shared_daemon.connect() as qm, contextlib.suppress(trigmon.ObjectAlreadyExists):
        define(qm, "TAKEN.INITQ")
    with (
        shared_daemon.connect() as qm,
        qm.open("TAKEN.INITQ", "input_exclusive"),
        monitor(shared_daemon, *arguments, **env) as ended,
    ):
        assert ended.wait(60) == status, ended.stderr.read()
    assert status in {each.status for each in EXITS if each.program == "monitor"}


def test_a_monitor_that_is_asked_to_stop_while_its_queue_manager_is_away_ends_well(daemon):
    with monitor(daemon(start=False)) as waits:
        assert "not reachable" in waits.stderr.readline()
        waits.terminate()
        assert waits.wait(60) == STOPPED

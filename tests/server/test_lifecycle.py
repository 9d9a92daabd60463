"""Start, stop, kill, and what stands in the way of a start."""

import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

import trigmon
from tests.daemons import Raw, define
from trigmon import paths
from trigmon.mq.calls import Display, Status


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_order(daemon, number):
    one = daemon()
    one.process.send_signal(number)
    assert one.wait() == 0
    assert not one.socket.exists()
    assert one.events("stopped")


def test_an_orderly_stop_answers_waiting_gets_and_keeps_what_is_persistent(daemon):
    one = daemon()
    collected = []

    def wait():
        with pytest.raises(trigmon.QMgrStopping) as raised, one.connect() as other:
            other.open("KEPT", "input_shared").get(wait_interval_ms=60_000)
        collected.append(raised.value)

    with pytest.raises(trigmon.QMgrStopping), one.connect() as qm:
        define(qm, "KEPT")
        waiter = threading.Thread(target=wait)
        waiter.start()
        while not qm.call(Status()).values["waiting_gets"]:
            time.sleep(0.01)
        define(qm, "STAYS")
        qm.put("STAYS", b"kept", persistence="persistent")
        qm.put("STAYS", b"gone", persistence="not_persistent")
        with qm.open("STAYS", "output") as q:
            q.put(b"never committed", persistence="persistent", syncpoint=True)
        assert one.stop() == 0
        waiter.join(10)
        qm.commit()
    assert len(collected) == 1
    with one.start().connect() as qm, qm.open("STAYS", "input_shared") as q:
        assert [message.data for message in q.drain()] == [b"kept"]


def test_a_second_daemon_on_the_same_data_is_refused_with_a_clear_word(daemon, tmp_path):
    one = daemon()
    second = daemon(home=one.home, start=False)
    second.log = tmp_path / "second.log"
    second.launch(env=one.env | {"TRIGMON_RUNTIME": str(tmp_path)})
    assert second.wait() == 5
    (row,) = second.events("the queue manager cannot start")
    assert str(one.data) in row["why"]
    assert "another queue manager" in row["why"]
    with one.connect() as qm:
        assert qm.call(Status())


def test_a_second_daemon_on_the_same_socket_is_refused_with_a_clear_word(daemon, tmp_path):
    one = daemon()
    second = daemon(home=one.home, start=False)
    second.log = tmp_path / "second.log"
    second.launch("--data", str(tmp_path / "data"))
    assert second.wait() == 5
    (row,) = second.events("the queue manager cannot start")
    assert str(one.socket) in row["why"]
    assert paths.answers(one.socket)


def test_a_killed_daemons_socket_is_replaced(daemon):
    one = daemon()
    one.kill()
    assert one.socket.exists()
    assert not paths.answers(one.socket)
    with one.start().connect() as qm:
        assert qm.call(Status())


def test_a_socket_of_somebody_else_is_not_replaced(daemon):
    one = daemon(start=False)
    one.socket.parent.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
        other.bind(str(one.socket))
        other.listen()
        assert one.launch().wait() == 5
        assert paths.answers(one.socket)


def test_a_socket_path_that_is_too_long_is_refused_at_start(daemon, tmp_path):
    one = daemon(start=False)
    runtime = tmp_path / ("long" * 30)
    assert one.launch(env=one.env | {"TRIGMON_RUNTIME": str(runtime)}).wait() == 2
    (row,) = one.events("the queue manager cannot start")
    assert "107" in row["why"]
    assert str(runtime) in row["why"]


def test_the_socket_lies_in_a_directory_for_its_group_alone(daemon):
    one = daemon()
    assert one.socket.parent.stat().st_mode & 0o777 == 0o750
    assert one.socket.stat().st_mode & 0o777 == 0o660
    assert one.data.stat().st_mode & 0o777 == 0o700


def test_definition_files_make_what_does_not_exist_and_undo_nobodys_alter(daemon, tmp_path):
    file = tmp_path / "queues.yaml"
    file.write_text("- qmgr:\n  max_handles: 99\n- qlocal: A\n  max_q_depth: 7\n")
    one = daemon(settings={"qmgr.definitions": file})
    with one.connect() as qm:
        (queue,) = qm.call(Display(object_type="QLOCAL", name="A")).rows
        (manager,) = qm.call(Display(object_type="QMGR")).rows
        assert (queue["max_q_depth"], manager["max_handles"]) == (7, 99)
        qm.call(trigmon.mq.calls.Alter(object_type="QLOCAL", name="A", attributes={"max_q_depth": 8}))
        qm.call(trigmon.mq.calls.Alter(object_type="QMGR", name="", attributes={"max_handles": 98}))
    one.stop()
    file.write_text(file.read_text() + "- qlocal: B\n")
    with one.start().connect() as qm:
        rows = qm.call(Display(object_type="QLOCAL", name="*")).rows
        (manager,) = qm.call(Display(object_type="QMGR")).rows
    assert {row["name"]: row["max_q_depth"] for row in rows if row["name"] in "AB"} == {"A": 8, "B": 5000}
    assert manager["max_handles"] == 98


def test_a_wrong_definition_stops_the_start_and_names_file_line_and_key(daemon, tmp_path):
    file = tmp_path / "queues.yaml"
    file.write_text("- qlocal: A\n  max_q_dept: 7\n")
    one = daemon(start=False, settings={"qmgr.definitions": file})
    assert one.launch().wait() == 2
    (row,) = one.events("the queue manager cannot start")
    assert f"{file}:2" in row["why"]
    assert "max_q_depth" in row["why"]


def test_a_store_that_fails_is_answered_by_nothing_and_exit_70_and_loses_nothing(daemon):
    one = daemon()
    with one.connect() as qm:
        define(qm, "Q", def_persistence="persistent")
    put = 0
    with pytest.raises(trigmon.ConnectionBroken), one.connect() as qm, qm.open("Q", "output") as q:
        q.put(b"0")
        put += 1
        # No file of the daemon may grow any more: the store's next write fails as on a broken disk.
        size = max(file.stat().st_size for file in one.data.iterdir())
        resource.prlimit(one.process.pid, resource.RLIMIT_FSIZE, (size, size))
        while put < 20_000:
            q.put(b"x" * 10_000)
            put += 1
    assert one.wait() == 70
    assert one.events("the store failed; what became of the last calls is unknown")
    with one.start().connect() as qm, qm.open("Q", "input_shared") as q:
        found = len(list(q.drain()))
    assert found in (put, put + 1)


def test_the_service_manager_is_notified_and_the_watchdog_fed(daemon, tmp_path):
    one = daemon(start=False)
    path = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(path))
        manager.settimeout(20)
        one.launch(env=one.env | {"NOTIFY_SOCKET": str(path), "WATCHDOG_USEC": "400000"})
        notices = [manager.recv(4096).decode()]
        with one.connect() as qm:
            assert qm.call(Status())
        while "WATCHDOG=1" not in notices:
            notices.append(manager.recv(4096).decode())
        assert one.stop() == 0
        manager.settimeout(0.1)
        while "STOPPING=1" not in notices[-1]:
            notices.append(manager.recv(4096).decode())
    assert notices[0].startswith("READY=1\n")
    assert any(line.startswith("STATUS=") and "connections" in line for line in notices)


def test_a_socket_units_socket_is_taken_over_and_left_in_place(daemon, tmp_path):
    one = daemon(start=False)
    one.socket.parent.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(str(one.socket))
        listening.listen()
        command = 'LISTEN_FDS=1 LISTEN_PID=$$ exec "$0" -m trigmon run --no-monitor'
        one.process = subprocess.Popen(
            ["/bin/sh", "-c", command, sys.executable],
            env=one.env,
            pass_fds=[3],
            preexec_fn=lambda: os.dup2(listening.fileno(), 3),
        )
        # Nobody accepts yet, but the kernel lets the client wait for who will.
        with Raw(one) as client:
            assert client.welcome.q_mgr_name == "QM1"
        assert one.stop() == 0
        assert one.socket.exists()


def test_a_tcp_address_that_is_taken_is_refused_and_leaves_no_socket_behind(daemon):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        one = daemon(start=False, settings={"server.tcp": f"127.0.0.1:{taken.getsockname()[1]}"})
        assert one.launch().wait() == 5
    assert not one.socket.exists()
    assert "nobody can listen" in one.events("the queue manager cannot start")[0]["why"]


def test_tcp_on_loopback_serves_and_makes_nobody_an_administrator(daemon):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    one = daemon(settings={"server.tcp": f"127.0.0.1:{port}"})
    assert one.wait_for_event("ready")["listens"] == [str(one.socket), f"127.0.0.1:{port}"]
    with one.connect() as qm:
        define(qm, "OPEN.TO.ALL")
    with trigmon.connect(f"tcp://127.0.0.1:{port}") as qm:
        assert not qm.administrator
        qm.put("OPEN.TO.ALL", b"from afar")
        with pytest.raises(trigmon.NotAuthorized):
            define(qm, "NOT.MINE")
    assert one.events("not authorized")[0]["user"] == "nobody (TCP)"


class TestOneDirectory:
    """The runtime directory is where the data is: the socket lies beside the store."""

    @pytest.fixture
    def one(self, daemon):
        made = daemon(start=False)
        made.socket = made.data / paths.SOCKET_NAME
        return made

    def start(self, one, **settings):
        one.settings.update(settings)
        return one.launch(env=one.env | {"TRIGMON_RUNTIME": str(one.home)})

    def test_it_runs_and_goes_on_after_a_kill(self, one):
        for how in ("kill", "stop"):
            self.start(one).wait_until_ready()
            with one.connect() as qm:
                define(qm, how)
            getattr(one, how)()
        self.start(one).wait_until_ready()
        with one.connect() as qm:
            assert len(qm.call(Display(object_type="QLOCAL", name="kill")).rows) == 1
        assert one.data.stat().st_mode & 0o007 == 0

    def test_a_second_one_is_refused_still(self, one):
        self.start(one).wait_until_ready()
        first, second = one.process, self.start(one).process
        assert second.wait(60) == 5
        one.process = first

    def test_a_socket_for_others_would_open_the_data_to_them(self, one):
        self.start(one, **{"server.socket_mode": "0666"})
        assert one.wait() == 2
        assert f"the socket's directory {one.data} is the data directory" in one.log.read_text()

"""Whom a program speaks to over TCP: a stranger who listens on the port is told from the queue manager."""

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import trigmon
from tests.strangers import as_user, meanwhile_as_user
from trigmon import paths
from trigmon.client import peer
from trigmon.wire import codec

ALICE, BOB = 5001, 5002


def serve(listening):
    """Answers each program as a queue manager of the name QM1 would."""
    while True:
        link, _ = listening.accept()
        with link:
            link.recv(65_536)
            link.sendall(codec.encode_welcome(codec.Welcome(protocol=codec.PROTOCOL_VERSION, q_mgr_name="QM1")))
            link.recv(65_536)


@pytest.fixture(params=["127.0.0.1", "::1"])
def stranger(request):
    """The address at which a process of BOB's says that it is QM1."""
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    family = socket.AF_INET6 if ":" in request.param else socket.AF_INET
    with socket.create_server((request.param, 0), family=family) as listening:
        host, port = listening.getsockname()[:2]
        with meanwhile_as_user(BOB, lambda: serve(listening)):
            listening.close()
            yield f"tcp://{f'[{host}]' if ':' in host else host}:{port}"


@pytest.mark.parametrize("behind", ["", "/QM1", "/QM1?user=root", f"/QM1?user={ALICE}"])
def test_a_stranger_on_the_port_is_named_and_given_nothing(stranger, behind):
    with pytest.raises(trigmon.QMgrNameError) as refused:
        trigmon.connect(stranger + behind).put("Q", b"salary list")
    expected = str(ALICE) if str(ALICE) in behind else "root"
    assert f"is served by user {BOB}, not by {expected}: nothing was put" in str(refused.value)
    assert f"?user={BOB}" in str(refused.value)


def test_the_expected_user_can_be_named_and_is_the_program_s_own_or_the_owner_of_the_runtime_directory(
    stranger, monkeypatch, tmp_path
):
    trigmon.connect(f"{stranger}/QM1?user={BOB}").drop()
    as_user(BOB, lambda: trigmon.connect(stranger).drop())
    monkeypatch.setenv("TRIGMON_RUNTIME", str(tmp_path))
    directory = paths.socket_path("QM1").parent
    directory.mkdir()
    os.chown(directory, BOB, BOB)
    trigmon.connect(f"{stranger}/QM1").drop()
    os.chown(directory, ALICE, ALICE)
    with pytest.raises(trigmon.QMgrNameError, match=rf"not by root or {ALICE}:"):
        trigmon.connect(f"{stranger}/QM1")


def test_another_queue_manager_than_the_one_that_is_named_is_refused(stranger):
    with pytest.raises(trigmon.QMgrNameError, match="the queue manager QM1 answers there, not QM2"):
        trigmon.connect(f"{stranger}/QM2?user={BOB}")


def test_a_user_that_this_machine_does_not_have_is_reported(stranger):
    with pytest.raises(trigmon.QMgrNameError, match="no such user"):
        trigmon.connect(f"{stranger}/QM1?user=nosuch.user")


def test_any_user_finds_a_daemon_of_root_over_tcp(passable):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    passable(settings={"server.tcp": f"127.0.0.1:{port}"})
    as_user(BOB, lambda: trigmon.connect(f"tcp://127.0.0.1:{port}/QM1").disconnect())
    as_user(BOB, lambda: trigmon.connect(f"tcp://localhost:{port}/QM1?user=root").disconnect())


def test_a_listener_of_another_family_is_found_too():
    listening = socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)
    address = "127.0.0.1", listening.getsockname()[1]
    with listening, socket.create_connection(address) as link, listening.accept()[0]:
        assert peer.owner(link) == os.geteuid()


def test_a_connection_that_nobody_has_accepted_yet_has_no_owner():
    listening = socket.create_server(("127.0.0.1", 0))
    with listening, socket.create_connection(listening.getsockname()) as link:
        assert peer.owner(link) is None


_IN_A_NAMESPACE = """
import sys, trigmon
try:
    trigmon.connect(sys.argv[1], timeout_s=10).drop()
except trigmon.QMgrNameError as error:
    print(error)
"""


def test_users_that_a_container_has_no_number_for_are_not_taken_for_one_another(stranger, tmp_path):
    """There both the stranger and the owner of the runtime directory are shown as 65534."""
    alone = ["unshare", "--user", "--map-root-user"]
    if not shutil.which("unshare") or subprocess.run([*alone, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine lets nobody make a user namespace")
    directory = tmp_path / "QM1"
    directory.mkdir()
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(directory / "mq.sock"))
        os.chown(directory, ALICE, ALICE)
        directory.chmod(0o755)
        argv = [*alone, sys.executable, "-c", _IN_A_NAMESPACE, f"{stranger}/QM1"]
        variables = os.environ | {
            "TRIGMON_RUNTIME": str(tmp_path),
            "PYTHONPATH": str(Path(trigmon.__file__).parents[1]),
        }
        run = subprocess.run(argv, env=variables, capture_output=True, text=True, timeout=60, check=False)
    assert "nothing was put" in run.stdout, run.stderr

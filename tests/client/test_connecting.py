"""Which queue manager is meant, and what is said when it is not there."""

import os
import re
import socket
import subprocess
import sys

import pytest

import trigmon
from tests.cli.conftest import run_cli
from tests.client.conftest import WELCOME
from tests.daemons import define
from trigmon import paths
from trigmon.client.address import default_address, tcp_address
from trigmon.mq.calls import DisplayHandles
from trigmon.mq.replies import Refused
from trigmon.settings import SettingsError
from trigmon.wire import codec

WRONG = ["tcp://there:1414/a b", "tcp://there:1414?user", "tcp://there:1414/QM1?user=", "tcp://there?group=x"]


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    """An environment that names no queue manager, with a runtime directory of its own."""
    for name in ("TRIGMON_QMGR", "TRIGMON_QMGR_NAME", "TRIGMON_CONFIG", "TRIGMON_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TRIGMON_RUNTIME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path


def listen(directory, name):
    (directory / name).mkdir()
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(str(directory / name / paths.SOCKET_NAME))
    listening.listen()
    return listening


def test_a_queue_manager_is_found_by_its_name(shared_daemon, nowhere, monkeypatch):
    monkeypatch.setenv("TRIGMON_RUNTIME", str(shared_daemon.socket.parent.parent))
    with trigmon.connect("QM1") as qm:
        assert qm.q_mgr_name == "QM1"
        assert qm.administrator
        assert qm.server_version == trigmon.__version__
        assert repr(qm) == "<Connection to QM1>"
    assert repr(qm) == "<Connection to QM1, ended>"


@pytest.mark.parametrize("form", ["unix:{}", "unix://{}"])
def test_a_queue_manager_is_found_by_its_socket(shared_daemon, form):
    with trigmon.connect(form.format(shared_daemon.socket)) as qm:
        assert qm.q_mgr_name == "QM1"


def test_a_queue_manager_is_found_at_a_tcp_address(daemon):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    daemon(settings={"server.tcp": f"127.0.0.1:{port}"})
    with trigmon.connect(f"tcp://127.0.0.1:{port}") as qm:
        assert (qm.q_mgr_name, qm.administrator) == ("QM1", False)


@pytest.mark.parametrize(
    ("address", "meant"),
    [
        ("tcp://there:1415", ("there", 1415)),
        ("tcp:there:1415", ("there", 1415)),
        ("tcp://there", ("there", 1414)),
        ("tcp://[::1]:1415", ("::1", 1415)),
        ("tcp://[::1]", ("::1", 1414)),
        ("tcp://there:1415/", ("there", 1415)),
        ("tcp://there/QM/1", ("there", 1414, "QM/1")),
        ("tcp://there:1415/QM1?user=alice", ("there", 1415, "QM1", "alice")),
        ("tcp://there:1415?user=1000", ("there", 1415, "", "1000")),
    ],
)
def test_a_tcp_address_says_host_and_port_and_who_is_meant(address, meant):
    assert tcp_address(address) == (*meant, *["", ""][len(meant) - 2 :])


@pytest.mark.parametrize(
    "address", ["tcp://", "tcp://:1414", "tcp://there:0", "tcp://there:70000", "tcp://there:mq", *WRONG]
)
def test_a_tcp_address_without_host_or_port_is_refused(address):
    with pytest.raises(trigmon.QMgrNameError, match="is not tcp://host:port"):
        trigmon.connect(address)


def test_what_is_neither_name_nor_address_is_refused():
    with pytest.raises(trigmon.QMgrNameError, match="'a b' is neither a queue manager's name nor"):
        trigmon.connect("a b")


def test_without_a_name_the_environment_says_which(nowhere, monkeypatch):
    monkeypatch.setenv("TRIGMON_QMGR", "NAMED")
    assert default_address() == "NAMED"


def test_without_a_name_the_configuration_file_says_which(nowhere, monkeypatch):
    (nowhere / "mine.yaml").write_text("qmgr: {name: CONFIGURED}\n")
    monkeypatch.setenv("TRIGMON_CONFIG", str(nowhere / "mine.yaml"))
    assert default_address() == "CONFIGURED"


def test_a_configuration_file_that_names_no_queue_manager_leaves_it_to_those_running(nowhere, monkeypatch):
    (nowhere / "mine.yaml").write_text("log: {level: debug}\n")
    monkeypatch.setenv("TRIGMON_CONFIG", str(nowhere / "mine.yaml"))
    with listen(nowhere, "LONELY"):
        assert default_address() == "LONELY"


def test_a_configuration_file_that_cannot_be_read_is_reported(nowhere, monkeypatch):
    (nowhere / "mine.yaml").write_text("qmgr: {nam: CONFIGURED}\n")
    monkeypatch.setenv("TRIGMON_CONFIG", str(nowhere / "mine.yaml"))
    with pytest.raises(SettingsError, match=r"mine.yaml:1: .*'nam'"):
        default_address()


def test_without_any_name_the_only_one_running_is_meant(nowhere):
    with listen(nowhere, "LONELY"):
        assert default_address() == "LONELY"


def test_with_several_running_one_has_to_be_named(nowhere):
    with listen(nowhere, "ONE"), listen(nowhere, "TWO"), pytest.raises(trigmon.QMgrNameError, match="ONE, TWO"):
        default_address()


def use(*arguments):
    used = run_cli("use", *arguments)
    assert used.exit_code == 0, used.stderr
    return used.stdout


def test_the_chosen_one_is_meant_however_many_run(nowhere):
    use("TWO")
    assert default_address() == "TWO"
    with listen(nowhere, "ONE"), listen(nowhere, "TWO"):
        assert default_address() == "TWO"
        assert use().startswith("TWO is meant by default (")
        assert use("--none").startswith("no queue manager is chosen")
        with pytest.raises(
            trigmon.QMgrNameError, match=r"ONE, TWO \(trigmon use NAME, --qmgr NAME or TRIGMON_QMGR_NAME"
        ):
            default_address()


def test_one_that_does_not_run_is_chosen_with_a_remark(nowhere):
    file = nowhere / "client.ini"
    file.write_text("[FAR]\naddress = tls://far.example.com\n")
    env = {"TRIGMON_RUNTIME": str(nowhere), "TRIGMON_CLIENT_FILE": str(file)}

    def remark(*arguments):
        return run_cli("use", *arguments, env=env).stderr

    assert remark("TWO") == "no queue manager TWO runs on this machine now, and no client.ini says where one is\n"
    assert remark("FAR") == remark("--none") == remark() == ""
    with listen(nowhere, "TWO"):
        assert remark("TWO") == ""


def test_a_variable_and_a_file_for_this_call_come_before_the_chosen_one(nowhere, monkeypatch):
    use("CHOSEN")
    (nowhere / "mine.yaml").write_text("qmgr: {name: CONFIGURED}\n")
    monkeypatch.setenv("TRIGMON_CONFIG", str(nowhere / "mine.yaml"))
    assert default_address() == "CONFIGURED"
    monkeypatch.setenv("TRIGMON_QMGR_NAME", "NAMED")
    assert default_address() == "NAMED"


def test_an_error_for_the_chosen_one_says_where_the_choice_is_kept(nowhere):
    use("TWO")
    file = re.escape(str(paths.default_qmgr_file()))
    for address in (None, "TWO", f"unix:{paths.find_socket('TWO')}"):
        with pytest.raises(trigmon.QMgrNotAvailable, match=rf"\(trigmon use has made TWO the default, in {file}\)"):
            trigmon.connect(address)
    with pytest.raises(trigmon.QMgrNotAvailable) as refused:
        trigmon.connect("OTHER")
    assert "trigmon use" not in str(refused.value)


def test_commands_that_read_settings_are_about_the_chosen_one_too(nowhere, monkeypatch):
    env = {"TRIGMON_RUNTIME": str(nowhere), "TRIGMON_HOME": str(nowhere / "home")}
    use("CHOSEN")
    assert "CHOSEN: there is no queue manager yet" in run_cli("tls", "show", env=env).stderr
    assert 'ibmmq_qmgr_status{qmgr="CHOSEN"' in run_cli("metrics", env=env).stdout
    with listen(nowhere, "ONE"), listen(nowhere, "TWO"):
        assert "CHOSEN" in run_cli("tls", "show", env=env).stderr
        use("--none")
        data = env | {"TRIGMON_QMGR_DATA": str(nowhere / "data")}
        assert f"{nowhere}/data: there is no queue manager yet" in run_cli("tls", "show", env=data).stderr
        assert "ONE: there is no queue manager yet" in run_cli("tls", "show", "--qmgr", "ONE", env=env).stderr


@pytest.mark.parametrize("name", ["TRIGMON_RECONNECT", "TRIGMON_CALL_TIMEOUT"])
@pytest.mark.parametrize("value", ["abc", "-1", "nan", "1e400"])
def test_a_variable_that_is_no_number_of_seconds_is_named_and_the_command_ends_with_2(nowhere, name, value):
    refused = run_cli("status", env={"TRIGMON_HOME": str(nowhere), name: value})
    assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1)
    assert f"{name}={value}: it is a number of seconds" in refused.stderr


def test_a_variable_that_names_a_file_that_is_not_there_is_named(nowhere):
    refused = run_cli("status", env={"TRIGMON_HOME": str(nowhere), "TRIGMON_CONFIG": "/nonexistent"})
    assert "TRIGMON_CONFIG=/nonexistent: No such file or directory" in refused.stderr


def test_what_is_no_name_is_not_chosen(nowhere):
    assert "is no name of a queue manager" in run_cli("use", "two words").stderr
    assert run_cli("use", "QM1", "--none").exit_code == 2
    assert not paths.default_qmgr_file().exists()


def test_with_none_running_the_default_name_is_not_available(nowhere):
    with pytest.raises(trigmon.QMgrNotAvailable, match=r"nothing answers at .*QM1.mq.sock: no such file"):
        trigmon.connect()


def test_a_socket_nobody_listens_on_is_not_available(tmp_path):
    path = tmp_path / "left.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as left:
        left.bind(str(path))
    with pytest.raises(trigmon.QMgrNotAvailable, match="connection refused"):
        trigmon.connect(f"unix:{path}")


def test_who_never_says_welcome_is_not_available(tmp_path):
    with listen(tmp_path, "MUTE"), pytest.raises(trigmon.QMgrNotAvailable, match="no welcome within"):
        trigmon.connect(f"unix:{tmp_path}/MUTE/{paths.SOCKET_NAME}", timeout_s=0.1)


def test_a_full_backlog_is_waited_for_and_then_not_available(tmp_path):
    path = tmp_path / "busy.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as busy, socket.socket(socket.AF_UNIX) as first:
        busy.bind(str(path))
        busy.listen(0)
        first.connect(str(path))
        with pytest.raises(trigmon.QMgrNotAvailable, match="backlog is full"):
            trigmon.connect(f"unix:{path}", timeout_s=0.1)


def test_what_is_no_queue_manager_is_reported_as_none(peer):
    with pytest.raises(trigmon.QMgrNotAvailable, match="what answers is no queue manager"):
        trigmon.connect(peer(b"220 mail.example ESMTP\r\n"))


def test_who_hangs_up_on_the_hello_is_not_available(peer):
    with pytest.raises(trigmon.QMgrNotAvailable, match="it closed the connection"):
        trigmon.connect(peer(b""))


def test_a_refused_hello_raises_its_reason(peer):
    with pytest.raises(trigmon.FunctionNotSupported, match="speaks protocol 2"):
        trigmon.connect(peer(codec.encode_welcome(Refused(reason=2298, about="the server speaks protocol 2"))))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_socket_that_lets_nobody_in_is_a_matter_of_authority(tmp_path):
    tmp_path.chmod(0o700)
    code = (
        "import grp, os, pwd, sys, trigmon\n"
        "connect = trigmon.connect\n"  # before the interpreter's own files may be out of reach
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "try: connect(sys.argv[1])\n"
        "except trigmon.MQError as error: print(int(error.reason), error.about)\n"
    )
    with listen(tmp_path, "PRIVATE"):
        path = tmp_path / "PRIVATE" / paths.SOCKET_NAME
        said = subprocess.run([sys.executable, "-c", code, f"unix:{path}"], capture_output=True, text=True, check=True)
    assert said.stdout.startswith(f"2035 {path}: permission denied, and it has no group to join")


def test_the_program_is_known_by_its_name_and_its_run(shared_daemon, qm, monkeypatch):
    monkeypatch.setenv("TRIGMON_RUN", "run-7")
    define(qm, "KNOWN")
    with trigmon.connect(shared_daemon.address, application="a name of more than 28 characters") as known:
        known.open("KNOWN", "input_shared")
        (row,) = qm.call(DisplayHandles(q_name="KNOWN")).rows
    assert "a name of more than 28 chara" in row.values()


def test_a_connection_that_was_welcomed_is_not_bound_by_the_time_connecting_may_take(peer):
    qm = trigmon.connect(peer(WELCOME), timeout_s=0.05)
    assert qm.alive
    qm.drop()

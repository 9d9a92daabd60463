"""Where things lie."""

import os
import socket

import pytest

from trigmon import paths


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch, tmp_path):
    """Removes the variables, and makes home empty."""
    for name in ("TRIGMON_HOME", "TRIGMON_RUNTIME", "STATE_DIRECTORY", "RUNTIME_DIRECTORY", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))


def listen(path):
    """Returns a socket that answers there."""
    path.parent.mkdir(parents=True)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(str(path))
    listening.listen()
    return listening


def test_data_lies_where_named_else_at_home_else_with_the_service_else_with_the_users_state(monkeypatch, tmp_path):
    assert paths.data_directory("QM1") == tmp_path / ".local/state/trigmon/QM1"
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert str(paths.data_directory("QM1")) == "/state/trigmon/QM1"
    monkeypatch.setenv("STATE_DIRECTORY", "/var/lib/trigmon:/var/lib/other")
    assert str(paths.data_directory("QM1")) == "/var/lib/trigmon/QM1"
    monkeypatch.setenv("TRIGMON_HOME", "/srv/mq")
    assert str(paths.data_directory("QM1")) == "/srv/mq/QM1"
    assert str(paths.data_directory("QM1", "/elsewhere")) == "/elsewhere"


@pytest.mark.parametrize("name", ["QM1", "A/B", "..", ".hidden", "A.B%_c"])
def test_every_queue_managers_name_has_a_file_name_of_its_own_that_leads_back(name):
    file = paths.file_name(name)
    assert "/" not in file
    assert not file.startswith(".")
    assert paths.name_of(file) == name


def test_the_runtime_directory_is_the_explicit_one_or_lies_in_the_home(monkeypatch, tmp_path):
    assert paths.runtime_directory() == tmp_path / "run/trigmon"
    monkeypatch.setenv("RUNTIME_DIRECTORY", "/run/trigmon")
    assert str(paths.runtime_directory()) == "/run/trigmon"
    monkeypatch.setenv("TRIGMON_HOME", "/srv/mq")
    assert str(paths.runtime_directory()) == "/srv/mq/.run"
    monkeypatch.setenv("TRIGMON_RUNTIME", "/r")
    assert str(paths.socket_path("A/B")) == "/r/A&B/mq.sock"


def test_without_a_session_a_user_gets_a_directory_that_nobody_else_made(monkeypatch):
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    monkeypatch.setattr(os, "getuid", lambda: 54321)
    assert str(paths.runtime_directory()) == "/tmp/trigmon-54321"
    monkeypatch.setattr(paths, "_is_ours", lambda directory, uid: False)
    assert str(paths.runtime_directory()) == "/run/trigmon"


def test_running_are_those_whose_socket_answers(monkeypatch, tmp_path):
    monkeypatch.setenv("TRIGMON_RUNTIME", str(tmp_path))
    assert paths.running() == []
    with listen(tmp_path / "QM2/mq.sock"), listen(tmp_path / "A&B/mq.sock"):
        (tmp_path / "empty").mkdir()
        listen(tmp_path / "DEAD/mq.sock").close()
        assert paths.running() == ["A/B", "QM2"]


def test_a_client_finds_its_users_queue_manager_before_the_systems(monkeypatch, tmp_path):
    monkeypatch.setattr(paths, "SYSTEM_RUNTIME", tmp_path / "system")
    ours, theirs = tmp_path / "run/trigmon/QM1/mq.sock", tmp_path / "system/QM1/mq.sock"
    assert paths.find_socket("QM1") == ours
    with listen(theirs):
        assert paths.find_socket("QM1") == theirs
        with listen(ours):
            assert paths.find_socket("QM1") == ours


@pytest.mark.parametrize("what", ["config", "process_defs", "systemd"])
def test_what_is_shipped_is_there(what):
    assert paths.shipped(what).is_dir()

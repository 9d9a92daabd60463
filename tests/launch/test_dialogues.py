"""Units against the recorded messages of a real systemd: also where none runs."""

from __future__ import annotations

import json
import signal

import pytest

from tests.launch import dialogues
from trigmon.keeper import protocol, run_directory, systemd_bus, systemd_unit


@pytest.fixture
def played(tmp_path, monkeypatch):
    """Returns a function that plays a scene against its recording and returns the events."""

    def play(scene):
        path = tmp_path / "private"
        monkeypatch.setattr(systemd_bus, "socket_path", lambda: path)
        monkeypatch.setattr(systemd_bus, "is_the_users_own", lambda: False)
        monkeypatch.setattr(run_directory, "start_ticks", lambda pid: 0)
        endpoint = dialogues.Endpoint(path, scene.__name__, tmp_path)
        stage = dialogues.Stage(tmp_path)
        scene(stage)
        stage.rest(lambda: endpoint.calls_left == 0)
        stage.close()
        endpoint.close()
        assert endpoint.wrong == []
        return {word: rest for word, _, *rest in stage.events}

    return play


def test_a_program_that_ends_well_is_stopped_as_a_unit_and_its_state_is_its_exit(played, tmp_path):
    reported = played(dialogues.ends_well)
    (pid,), (ended,) = reported["started"], reported["ended"]
    assert (ended["status"], ended["pid"], ended["why"], ended["limit_s"]) == (0, pid, "", 0.0)
    assert 0 < ended["start_ms"] <= ended["end_ms"]
    assert not (tmp_path / "runs/r" / systemd_unit.ENVIRONMENT).exists()


def test_one_that_ends_badly_keeps_its_status_and_its_failure_is_reset(played):
    assert played(dialogues.ends_badly)["ended"][0]["status"] == 3


def test_what_cannot_be_executed_never_was_a_program(played):
    reported = played(dialogues.cannot_be_executed)
    assert reported["failed"] == ["systemd: the program cannot be executed (203)"]
    assert "started" not in reported


def test_what_systemd_refuses_is_reported_in_its_words(played):
    assert "nor an absolute path" in played(dialogues.is_refused)["failed"][0]


def test_the_time_limit_is_systemds_and_is_reported_as_ours(played):
    ended = played(dialogues.takes_too_long)["ended"][0]
    assert (ended["status"], ended["why"], ended["limit_s"]) == (-signal.SIGTERM, protocol.TIME_LIMIT, 0.5)


def test_a_stop_goes_to_all_of_the_control_group_and_its_reason_is_kept(played, tmp_path):
    ended = played(dialogues.is_asked_to_end)["ended"][0]
    assert (ended["status"], ended["why"]) == (-signal.SIGTERM, protocol.STOPPED)
    assert run_directory.read(tmp_path / "runs/r")["ends"] == protocol.STOPPED


def test_how_it_ended_while_nobody_was_there_is_asked_of_its_unit(played):
    assert played(dialogues.ended_while_nobody_was_there)["ended"][0]["status"] == 6


def test_every_scene_has_a_recording_without_a_value_of_the_environment():
    recorded = {path.stem for path in dialogues.RECORDED.iterdir()}
    assert recorded == {scene.__name__ for scene in dialogues.SCENES}
    for path in dialogues.RECORDED.iterdir():
        calls = [step["call"] for steps in json.loads(path.read_text()) for step in steps if "call" in step]
        starts = [body for _, _, member, body in calls if member == "StartTransientUnit"]
        assert starts, path
        assert not any(name == "Environment" for _, _, properties, _ in starts for name, _ in properties)

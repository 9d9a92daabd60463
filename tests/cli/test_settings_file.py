"""A settings file that cannot be used is reported by every command in the same way."""

import subprocess
import sys

import pytest

from tests.daemons import Daemon


@pytest.fixture
def nobody_home(tmp_path):
    """A queue manager that does not run: the error in the settings is reported first."""
    return Daemon(tmp_path / "home")


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("command", [["status"], ["put", "Q", "x"], ["config", "show"]])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, "does not exist"),
        ("qmgr: [", "mine.yaml:"),
        ("qmgr: {nam: QM2}", "known one is 'name'"),
    ],
)
def test_it_is_a_matter_of_usage(nobody_home, tmp_path, command, text, expected, named):
    path = tmp_path / "mine.yaml"
    if text is not None:
        path.write_text(text)
    env = nobody_home.env
    if not named:
        del env["TRIGMON_QMGR"]
    argv = [sys.executable, "-m", "trigmon", "--config", str(path), *command]
    ended = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2, ended.stderr
    assert str(path) in ended.stderr
    assert expected in ended.stderr.lower()
    assert "queue manager" not in ended.stderr

"""trigmon top as a command: what it needs."""

import os
import pty
import subprocess
import sys

import pytest

from tests.cli.conftest import Trigmon, run_cli


def test_without_textual_the_error_names_the_extra(monkeypatch):
    for name in [name for name in sys.modules if name.startswith(("textual", "trigmon.console.top"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "textual", None)
    done = run_cli("top")
    assert (done.exit_code, done.stderr) == (1, "Error: the console needs Textual: pip install 'trigmon[console]'\n")


def test_without_a_terminal_it_names_the_command_that_needs_none(trigmon: Trigmon):
    done = trigmon("top")
    assert (done.exit_code, "trigmon status --output json" in done.stderr) == (2, True)


@pytest.mark.parametrize(("begin", "status"), [("1 / 0", 1), ("self.exit()", 0)])
def test_it_ends_with_1_when_the_console_crashed(shared_daemon, begin, status):
    text = f"""
from trigmon.cli.main import cli
from trigmon.console.top import Top
def on_mount(self):
    {begin}
Top.on_mount = on_mount
cli(["top"], prog_name="trigmon")
"""
    ours, terminal = pty.openpty()
    links = {"stdin": terminal, "stdout": terminal, "stderr": terminal}
    env = shared_daemon.env | {"TERM": "xterm-256color"}
    with subprocess.Popen([sys.executable, "-c", text], env=env, **links) as process:
        os.close(terminal)
        while _read(ours):
            pass
        os.close(ours)
        assert process.wait(60) == status


def _read(terminal: int) -> bytes:
    """Returns what a terminal shows next; b"" when the last program has left it, which Linux answers with EIO."""
    try:
        return os.read(terminal, 65_536)
    except OSError:
        return b""

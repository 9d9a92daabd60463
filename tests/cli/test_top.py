"""trigmon top as a command: what it needs."""

import sys

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

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest

from tests.cli.conftest import objects, run_cli
from trigmon.cli.main import COMMANDS, cli
from trigmon.mq.attribute_meanings import MEANINGS
from trigmon.mq.attributes import ATTRIBUTES

PROMISED = {
    "namelist",
    "schedule",
    "watch",
    "bridge",
    *("run", "monitor", "demo", "apply", "queue", "process", "put", "get", "browse", "runs", "dlq", "spark"),
    *("status", "top", "web", "rest", "qmgr", "explain", "use", "group", "connections"),
    *("lint", "simulate", "mqsc", "mq-commands", "mqi", "export", "config", "completion"),
    *("backup", "restore", "check", "metrics", "notify", "dump", "load", "help", "tls"),
    *("grant", "revoke", "rights", "audit"),
}


def walk(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=path[-1] if path else "trigmon")
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from walk(found, (*path, name))


ALL = dict(walk(cli))


def test_every_promised_command_is_there():
    assert set(COMMANDS) == PROMISED
    assert {path[1] for path in ALL if path[:1] == ("queue",) and len(path) > 1} == {
        *("list", "status", "show", "define", "alter", "delete", "clear", "move", "pause", "resume")
    }
    assert {path[1] for path in ALL if path[:1] == ("runs",) and len(path) > 1} == {
        *("list", "show", "logs", "cancel", "retry", "history")
    }


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_every_help_tells_what_it_does_and_gives_an_example(path: tuple[str, ...]):
    result = run_cli(*path, "--help")
    assert result.exit_code == 0
    assert ALL[path].help
    examples = result.stdout.partition("Example:")[2].splitlines()[1:]
    assert any("trigmon" in line for line in examples)


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_every_example_is_a_command_that_exists(path: tuple[str, ...]):
    for line in ALL[path].example.replace("\\\n", " ").splitlines():
        words = shlex.split(re.split(r"\btrigmon ", line, maxsplit=1)[1].removesuffix(')"'))
        while words[0].startswith("--"):
            words = words[2:]
        assert tuple(words[: len(path)]) == path, line


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_the_common_options_stand_after_every_command(path: tuple[str, ...]):
    options = {option for parameter in ALL[path].params for option in parameter.opts}
    assert {"--qmgr", "--config", "--output"} <= options


def test_the_help_lists_each_command_once_under_a_heading_in_whole_clauses():
    listed = run_cli("--help").stdout.partition("Run a queue manager:")[2]
    shown = dict(re.findall(r"^  ([a-z-]+)  +(\S.*)$", listed, re.MULTILINE))
    assert list(shown) == list(COMMANDS)
    assert shown["apply"] == "Make the objects equal to the definition files"
    assert shown["completion"] == "Print the completion script of SHELL"
    assert all(text.count("(") == text.count(")") for text in shown.values())


def test_an_unknown_command_is_refused_with_the_nearest():
    result = run_cli("qeue")
    assert result.exit_code == 2
    assert "there is no command 'qeue'; did you mean 'queue'?" in result.stderr
    assert "did you mean 'show'?" in run_cli("queue", "shwo").stderr


def test_an_unknown_option_is_a_usage_error():
    assert run_cli("status", "--nope").exit_code == 2


def test_the_version_is_reported():
    assert run_cli("--version").stdout.startswith("trigmon 0.")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_a_script_for_each_shell(shell: str):
    result = run_cli("completion", shell)
    assert result.exit_code == 0
    assert "_TRIGMON_COMPLETE" in result.stdout


def test_completion_is_for_a_shell_we_know():
    assert run_cli("completion", env={"SHELL": "/bin/tcsh"}).exit_code == 2


@pytest.mark.parametrize("command", ["put", "get", "browse", "explain", "queue list"])
def test_a_small_command_imports_no_heavy_library(command: str):
    program = (
        "import sys; from trigmon.cli.main import cli\n"
        f"cli({command.split()!r} + ['X'], standalone_mode=False) if 0 else None\n"
        "from tests.cli.conftest import run_cli\n"
        f"run_cli(*{command.split()!r}, 'X', '--qmgr', 'NOBODY')\n"
        "print([m for m in ('pydantic', 'structlog', 'yaml', 'pyspark', 'asyncio', 'apsw') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "[]"


# -- trigmon help -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["trigger_msg_priority", "TRIGMPRI", "trigmpri"])
def test_an_attribute_is_explained_by_either_of_its_names(name: str):
    (shown,) = objects(run_cli("help", name, "--output", "json"))
    assert shown["means"] == MEANINGS["trigger_msg_priority"]
    assert (shown["mqsc"], shown["of"], shown["default"]) == ("TRIGMPRI", "QLOCAL, QMODEL", 0)


def test_every_attribute_has_a_meaning_and_every_meaning_an_attribute():
    assert set(MEANINGS) == {name for attributes in ATTRIBUTES.values() for name in attributes}
    assert all(text[0].isupper() and text.endswith((".", "...")) for text in MEANINGS.values())


def test_an_attribute_that_mq_does_not_have_says_so():
    (shown,) = objects(run_cli("help", "breaker", "--output", "json"))
    assert shown["mqsc"] == "BREAKER (not of MQ)"


@pytest.mark.parametrize("path", [("queue",), ("queue", "define"), ("backup",)])
def test_a_command_is_explained_as_by_its_own_help(path: tuple[str, ...]):
    assert run_cli("help", *path).stdout.split() == run_cli(*path, "--help").stdout.split()


def test_a_word_of_a_command_and_of_an_attribute_is_the_attribute_in_capitals():
    assert "Usage:" in run_cli("help", "put").stdout
    (shown,) = objects(run_cli("help", "PUT", "--output", "json"))
    assert shown["attribute"] == "inhibit_put"


def test_what_is_neither_is_refused_with_the_nearest():
    refused = run_cli("help", "trigger_typ")
    assert (refused.exit_code, "did you mean 'trigger_type'" in refused.stderr) == (2, True)
    assert run_cli("help").stdout.split() == run_cli("--help").stdout.split()

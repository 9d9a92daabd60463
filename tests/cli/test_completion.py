from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.daemons import define

NOBODY_THERE = {"TRIGMON_QMGR": "NOBODY"}


@pytest.fixture
def complete(tmp_path: Path):
    """``complete("trigmon queue show O", env)``: what bash offers for the line, and what stood on the terminal."""
    program = tmp_path / "bin" / "trigmon"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m trigmon "$@"\n')
    program.chmod(0o755)

    def of(line: str, env: dict[str, str]) -> tuple[list[str], str]:
        words = [shlex.quote(word) for word in line.split(" ")]
        script = (
            'eval "$(trigmon completion bash)"\n'
            f"COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}\n"
            '_trigmon_completion trigmon; printf "%s\\n" "${COMPREPLY[@]}"'
        )
        path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-c", script],
            env=env | {"PATH": path},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return done.stdout.split(), done.stderr

    return of


@pytest.fixture(scope="module")
def names(shared_daemon):
    with shared_daemon.connect() as qm:
        define(qm, "CO.ONE")
        define(qm, "CO.TWO")
        define(qm, "CO.PROC", "PROCESS", appl_id="/bin/true")


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        *((f"trigmon {words} CO.", ["CO.ONE", "CO.TWO"]) for words in ("queue show", "put", "get", "explain")),
        ("trigmon queue move CO.ONE CO.T", ["CO.TWO"]),
        ("trigmon process show C", ["CO.PROC"]),
        ("trigmon --output json process start CO", ["CO.PROC"]),
        ("trigmon queue sh", ["show"]),
    ],
)
def test_bash_is_offered_the_names_of_a_running_queue_manager(complete, names, shared_daemon, line, offered):
    assert complete(line, shared_daemon.env) == (offered, "")


def test_the_queue_manager_named_on_the_line_is_the_one_asked(complete, names, shared_daemon):
    line = f"trigmon --qmgr unix:{shared_daemon.socket} queue show CO.O"
    assert complete(line, dict(os.environ) | NOBODY_THERE) == (["CO.ONE"], "")


@pytest.mark.parametrize(
    ("line", "more"),
    [
        ("trigmon queue show O", {}),
        ("trigmon no.such.command O", {}),
        ("trigmon queue shwo O", {}),
        ("trigmon --config /nowhere queue show O", {"TRIGMON_QMGR": ""}),
        ("trigmon --qmgr tcp://nowhere:0 get O", {}),
        ("trigmon queue show 'O", {}),
    ],
)
def test_completion_offers_nothing_and_prints_nothing_where_nobody_answers(complete, line, more):
    assert complete(line, dict(os.environ) | NOBODY_THERE | more) == ([], "")


def test_a_completion_that_was_asked_for_wrongly_prints_nothing():
    env = {name: value for name, value in os.environ.items() if not name.startswith("COMP_")}
    argv = [sys.executable, "-m", "trigmon"]
    env |= {"_TRIGMON_COMPLETE": "bash_complete"}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")

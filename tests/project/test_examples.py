"""Every command line of the README and the documentation is executed here, or its page says why not.

A block that is not executed here has a comment before it: ``<!-- not executed: REASON -->``, or
``<!-- executed by: FILE -->`` with the test that executes it. A code block whose paragraph names a file is that file.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.daemons import queue_managers
from tests.waiting import until

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
TUTORIAL = ROOT / "docs" / "tutorial" / "first-trigger.md"
_BLOCK = re.compile(r"(?P<before>[^\n]*)\n\n(?P<indent> *)```(?P<language>\w+)\n(?P<text>.*?)\n *```", re.DOTALL)
_MARK = re.compile(r"<!-- (not executed|executed by): (.+?) -->")
_FILE = re.compile(r"`([\w.-]+\.(?:py|yaml))`")
# The test has done this already: the environment is there, and the queue manager runs.
_DONE = ("", ". .venv/bin/activate", "trigmon run")


class Block(NamedTuple):
    language: str
    text: str
    before: str

    @property
    def mark(self):
        return _MARK.search(self.before)

    @property
    def file(self):
        named = _FILE.findall(self.before)
        return named[0] if named and self.language in ("python", "yaml") else ""

    @property
    def commands(self):
        if self.language != "bash" or self.mark:
            return ""
        return "\n".join(line for line in self.text.splitlines() if line.split("#")[0].strip() not in _DONE)


def blocks(page):
    found = []
    for match in re.finditer(_BLOCK, page.read_text()):
        indent = match["indent"]
        text = "\n".join(line.removeprefix(indent) for line in match["text"].splitlines())
        found.append(Block(match["language"], text, _paragraph(page.read_text(), match.end("before"))))
    return found


def _paragraph(text, end):
    return text[:end].rpartition("\n\n")[2]


def named(page):
    return str(page.relative_to(ROOT))


EXECUTED = [page for page in PAGES if any(block.commands for block in blocks(page))]


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_block_is_read_and_every_mark_belongs_to_one(page):
    text, found = page.read_text(), blocks(page)
    assert len(re.findall(r"^ *```bash$", text, re.MULTILINE)) == sum(block.language == "bash" for block in found)
    assert len(_MARK.findall(text)) == sum(bool(block.mark) for block in found)


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_the_test_that_is_named_to_execute_a_block_is_there(page):
    files = [block.mark[2] for block in blocks(page) if block.mark and block.mark[1] == "executed by"]
    assert [file for file in files if not (ROOT / file).exists()] == []


@pytest.fixture(scope="module")
def queue_manager(tmp_path_factory):
    """Runs a queue manager with a monitor, with the queue and the program of the tutorial."""
    with queue_managers(lambda: tmp_path_factory.mktemp("examples")) as make:
        daemon = make(with_monitor=True, start=False)
        daemon.start(env=environment(daemon))
        directory = daemon.home / "tutorial"
        directory.mkdir()
        write_files(TUTORIAL, directory)
        execute("trigmon apply orders.yaml", directory, daemon)
        execute("""trigmon put ORDERS '{"price": 12}'""", directory, daemon)
        until(lambda: '"exited"' in execute("trigmon runs list --all --output json", directory, daemon))
        assert execute("trigmon runs logs", directory, daemon) == "an order for 12\n"
        yield daemon


@pytest.mark.parametrize("page", EXECUTED, ids=named)
def test_its_commands_do_what_they_are_for(page, queue_manager, tmp_path):
    for block in blocks(page):
        if block.file:
            (tmp_path / block.file).write_text(block.text + "\n")
        if block.commands:
            execute(block.commands, tmp_path, queue_manager)


def environment(daemon):
    """Returns the variables of a shell in which the virtual environment is active."""
    return daemon.env | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{daemon.env['PATH']}"}


def write_files(page, directory):
    for block in blocks(page):
        if block.file:
            (directory / block.file).write_text(block.text + "\n")


def execute(commands, directory, daemon):
    """Runs the commands as a shell would, ended by the first that fails; returns what they print."""
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands],
        cwd=directory,
        env=environment(daemon),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, f"{commands}\n{done.stdout}\n{done.stderr}"
    return done.stdout

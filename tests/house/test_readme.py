"""The README names what is there, and what it names is there."""

import re
import subprocess
from pathlib import Path

import click
import pytest

from trigmon.cli.main import COMMANDS, cli

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
TRACKED = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()


def test_the_table_of_commands_is_the_programs():
    rows = [line.split("|")[1] for line in README.splitlines() if line.startswith("| `trigmon ")]
    assert [name for row in rows for name in re.findall(r"`trigmon ([a-z]+)`", row)] == list(COMMANDS)


def test_every_command_in_an_example_is_one_with_these_options():
    context = click.Context(cli)
    examples = "\n".join(re.findall(r"```bash\n(.*?)```", README, re.DOTALL))
    used = re.findall(r"^trigmon ([^#\n]*)", examples, re.MULTILINE)
    assert len(used) > 5
    for line in used:
        command, words = cli, line.split()
        while isinstance(command, click.Group):
            command = command.get_command(context, words.pop(0))
        known = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= known, line


@pytest.mark.parametrize("storey", sorted(path.name for path in (ROOT / "trigmon").iterdir() if path.is_dir()))
def test_the_map_shows_every_storey(storey):
    if storey != "__pycache__":
        assert f"| `trigmon/{storey}` |" in README


def test_the_storeys_stand_in_the_order_of_the_contract():
    contract = (ROOT / "pyproject.toml").read_text().split("layers = [")[1].split("]")[0]
    place = {name: row for row, line in enumerate(contract.splitlines()) for name in re.findall(r"\w+", line)}
    shown = [place[name] for name in re.findall(r"^\| `trigmon/([a-z]+)` \|", README, re.MULTILINE)]
    assert shown == sorted(shown)


def test_nothing_tracked_names_a_machine_it_was_made_on():
    suspicious = re.compile(rb"/(?:root|home/[a-z]+|work)/[a-z]")
    found = [name for name in TRACKED if (ROOT / name).is_file() and suspicious.search((ROOT / name).read_bytes())]
    assert [name for name in found if name != "tests/house/test_readme.py"] == []

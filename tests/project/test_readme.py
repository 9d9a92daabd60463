"""The README and the documentation name what is there, and what they name is there."""

import re
import subprocess
from pathlib import Path

import click
import pytest

from trigmon.cli.main import cli

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
ARCHITECTURE = (ROOT / "docs" / "explanation" / "architecture.md").read_text()
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
TRACKED = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()


def test_the_readme_has_at_most_150_lines():
    assert len(README.splitlines()) <= 150


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_in_an_example_is_one_with_these_options(page):
    context = click.Context(cli)
    examples = "\n".join(re.findall(r"```bash\n(.*?)```", page.read_text(), re.DOTALL))
    for line in re.findall(r"^\s*trigmon ([^#\n]*)", examples, re.MULTILINE):
        command, words = cli, line.split()
        while isinstance(command, click.Group):
            command = command.get_command(context, words.pop(0))
            assert command is not None, line
        known = {option for parameter in command.params for option in parameter.opts}
        assert {word.partition("=")[0] for word in words if word.startswith("--")} <= known, line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_leads_to_a_file(page):
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("layer", sorted(path.name for path in (ROOT / "trigmon").iterdir() if path.is_dir()))
def test_the_map_shows_every_layer(layer):
    if layer != "__pycache__":
        assert f"| `trigmon/{layer}` |" in ARCHITECTURE


def test_the_layers_stand_in_the_order_of_the_contract():
    contract = (ROOT / "pyproject.toml").read_text().split("layers = [")[1].split("]")[0]
    place = {name: row for row, line in enumerate(contract.splitlines()) for name in re.findall(r"\w+", line)}
    shown = [place[name] for name in re.findall(r"^\| `trigmon/([a-z]+)` \|", ARCHITECTURE, re.MULTILINE)]
    assert shown == sorted(shown)


def test_nothing_tracked_names_a_machine_it_was_made_on():
    suspicious = re.compile(rb"/(?:root|home/[a-z]+|work)/[a-z]")
    found = [name for name in TRACKED if (ROOT / name).is_file() and suspicious.search((ROOT / name).read_bytes())]
    assert [name for name in found if name != "tests/project/test_readme.py"] == []

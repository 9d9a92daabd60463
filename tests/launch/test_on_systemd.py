"""Programs as units of systemd: on a real one, which is booted in namespaces where that can be had."""

from __future__ import annotations

import ast
import sys
import xml.etree.ElementTree as Xml
from pathlib import Path

import pytest

from tests.launch import booted

INSIDE = Path(__file__).with_name("on_systemd.py")
pytestmark = pytest.mark.timeout(2 * booted.COMMAND_S)  # the first of them boots the machine, and waits for them all


def _names():
    """The tests inside, a class's own and those it borrows."""
    for node in ast.parse(INSIDE.read_text()).body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield node.name
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            for member in node.body:
                names = [member.name] if isinstance(member, ast.FunctionDef) else []
                if isinstance(member, ast.Assign):
                    names = [target.id for target in member.targets if isinstance(target, ast.Name)]
                yield from (f"{node.name}.{name}" for name in names if name.startswith("test_"))


@pytest.fixture(scope="module")
def failures(tmp_path_factory):
    """Returns the texts of the failures of each test inside, by its name."""
    if why := booted.why_not():
        pytest.skip(f"no systemd can be booted here: {why}")
    here = Path(__file__).resolve().parents[2]
    argv = [
        "env",
        f"--chdir={here}",
        f"PYTHONPATH={here}",
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
    ]
    with booted.booted(tmp_path_factory.mktemp("machine")) as machine:
        ran = machine.run(*argv, "--basetemp=/tmp/pytest", "--junitxml=/tmp/report.xml", str(INSIDE))
        report = machine.run("cat", "/tmp/report.xml").stdout
    if not report:
        pytest.fail(ran.stdout + ran.stderr)
    failures = {}
    for case in Xml.fromstring(report).iter("testcase"):
        owner = case.get("classname", "").rpartition(".")[2]
        test = case.get("name", "").partition("[")[0]
        name = test if owner == INSIDE.stem else f"{owner}.{test}"
        texts = [found.text or "" for kind in ("failure", "error") for found in case.iter(kind)]
        failures.setdefault(name, []).extend(texts)
    return failures


@pytest.mark.parametrize("name", sorted(_names()))
def test_on_a_real_systemd(failures, name):
    assert failures[name] == []

"""The page about rights: its commands run as written, on a real queue manager."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.daemons import define

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "rights.md").read_text()
BLOCKS = re.findall(r"<!-- executed by: tests/project/test_rights_page.py -->\n\n```(\w+)\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def one(daemon):
    made = daemon()
    with made.connect() as qm:
        define(qm, "PAYROLL.MAY")
    return made


def test_the_commands_of_the_page_do_what_it_says(one, tmp_path):
    program = f'trigmon() {{ {sys.executable} -m trigmon "$@"; }}\nset -e\n'
    commands = "".join(text for kind, text in BLOCKS if kind == "bash")
    done = subprocess.run(
        ["bash", "-c", program + commands], env=one.env, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "PAYROLL.** gives everyone none" in done.stdout
    assert "trigmon grant bob put PAYROLL.MAY" in done.stdout
    refusal = " ".join(re.search(r"```text\n(.*?)```", PAGE, re.DOTALL)[1].split())
    assert "which bob has not (PAYROLL.** gives everyone none): trigmon grant bob put PAYROLL.MAY" in refusal


def test_the_file_of_the_page_is_applied(one, tmp_path):
    (file,) = (text for kind, text in BLOCKS if kind == "yaml")
    (tmp_path / "rights.yaml").write_text(file)
    done = one.trigmon("apply", str(tmp_path / "rights.yaml"))
    assert done.returncode == 0, done.stderr
    assert one.trigmon("rights", "--output", "json").stdout.count('"group"') == 2

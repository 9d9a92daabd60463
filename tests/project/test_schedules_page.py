"""The example of docs/how-to/schedules.md does what the page says."""

from __future__ import annotations

import re
from pathlib import Path

from trigmon.definitions.definition_files import read_text
from trigmon.mqsc.commands import read_script
from trigmon.testing import InMemory

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "schedules.md").read_text()


def block(language: str) -> str:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)[0]


def test_the_test_of_the_page_passes():
    names: dict[str, object] = {}
    exec(block("python"), names)
    (test,) = (each for name, each in names.items() if name.startswith("test_"))
    with InMemory() as mq:
        test(mq)


def test_the_definitions_of_the_page_can_be_read():
    assert [(one.object_type, one.name) for one in read_text(block("yaml"))] == [
        ("PROCESS", "ORDERS.TOTAL"),
        ("QLOCAL", "ORDERS"),
        ("SCHEDULE", "NIGHTLY"),
    ]
    commands = read_script(block("text"))
    assert [(command.noun, command.name, command.error) for command in commands] == [
        ("SCHEDULE", "NIGHTLY", None),
        ("SCHEDULE", "OFTEN", None),
    ]

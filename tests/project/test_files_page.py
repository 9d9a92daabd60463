"""The definitions of docs/how-to/files.md can be read, and are the same in YAML and MQSC."""

from __future__ import annotations

import re
from pathlib import Path

from trigmon.definitions.definition_files import read_text
from trigmon.mqsc.commands import read_script

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "files.md").read_text()


def block(language: str) -> str:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)[0]


def test_the_definitions_of_the_page_can_be_read():
    wanted = read_text(block("yaml"))
    assert [(one.object_type, one.name) for one in wanted] == [
        ("PROCESS", "INVOICES.LOAD"),
        ("QLOCAL", "INVOICES"),
        ("WATCH", "INCOMING"),
    ]
    (command,) = read_script(block("text"))
    assert (command.noun, command.name, command.error) == ("WATCH", "INCOMING", None)

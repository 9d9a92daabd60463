"""The commands of docs/how-to/backup-and-upgrade.md, on a booted machine with the units as shipped.

Its monitor and its socket are in use: both would start a queue manager again that is only stopped.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.project.test_install import installed

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "backup-and-upgrade.md").read_text()
BACK_UP, CHECK, RESTORE, START_MONITOR = re.findall(
    r"<!-- executed by: \S+ -->\n\n *```bash\n(.*?) *```", PAGE, re.DOTALL
)
QUEUE = "SYSTEM.DEFAULT.LOCAL.QUEUE"


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    with installed(tmp_path_factory.mktemp("machine")) as machine:
        yield machine


def put(machine, text):
    machine.do(f"trigmon put {QUEUE} {text} --persistent")


def bodies(machine):
    """Returns the messages on the queue."""
    return [json.loads(line)["data"] for line in machine.do(f"trigmon browse {QUEUE} --output json").splitlines()]


def test_the_messages_of_the_newest_backup_are_there_after_each_restore(machine):
    machine.do("mkdir -p /srv/backup")
    put(machine, "first")
    machine.do(BACK_UP)
    machine.do(CHECK)
    machine.do(f"trigmon get {QUEUE}")
    put(machine, "second")
    machine.do("sleep 1; " + BACK_UP)
    assert bodies(machine) == ["second"]
    machine.do(f"trigmon get {QUEUE}")
    put(machine, "after")
    for _ in range(2):
        machine.do("sleep 1; " + RESTORE)
        machine.do(START_MONITOR)
        assert bodies(machine) == ["second"]
        machine.do(f"trigmon get {QUEUE}")
    for unit in ("trigmon@QM1.socket", "trigmon@QM1.service", "trigmon-monitor@QM1.service"):
        assert machine.do(f"systemctl is-active {unit}") == "active\n"
    assert len(machine.do("ls /var/lib/trigmon/QM1/qm.db.replaced-?").splitlines()) == 2
    assert machine.do("find /var/lib/trigmon ! -user trigmon") == ""


def test_exported_definitions_make_an_empty_queue_manager_equal(machine):
    machine.do("trigmon queue define ORDERS max_q_depth=77 && trigmon export --yaml > /tmp/definitions.yaml")
    machine.do("trigmon queue delete ORDERS && trigmon apply /tmp/definitions.yaml")
    shown = json.loads(machine.do("trigmon queue show ORDERS --output json"))
    assert shown["max_q_depth"] == 77

"""A disk that was full or read-only for a while ends no service for good: the units as shipped, on a real systemd."""

from __future__ import annotations

import json
import time

import pytest

from tests.project.test_install import installed
from tests.waiting import until

pytestmark = pytest.mark.slow
DATA, MONITORS = "/var/lib/trigmon", "/var/lib/trigmon-monitor"
DISKS = f"""
mkdir -p {DATA} {MONITORS} /etc/trigmon
mount -t tmpfs -o size=48m,mode=755 tmpfs {DATA}
mount -t tmpfs -o size=8m,mode=755 tmpfs {MONITORS}
printf 'store: {{disk_reserve: 8 MiB}}\\n' > /etc/trigmon/trigmon.yaml
"""
FILL = "head -c 1G /dev/zero >> {}/neighbour 2>/dev/null || true"
MANY = 6
"""More failures than systemd allows in a minute by default."""


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    with installed(tmp_path_factory.mktemp("machine"), DISKS) as machine:
        machine.do("trigmon queue define Q def_persistence=persistent")
        yield machine


def put(machine, text):
    machine.do(f"trigmon put Q {text}")


def bodies(machine):
    """Returns the messages on the queue."""
    return [json.loads(line)["data"] for line in machine.do("trigmon browse Q --output json").splitlines()]


def shown(machine, unit, name):
    return machine.do(f"systemctl show -P {name} {unit}").strip()


def kill(machine, unit):
    """Ends it as a crash does; not by a client, which would start it by its socket."""
    machine.do(f"systemctl kill --signal=KILL --kill-whom=main {unit}")


def fails_often(machine, unit):
    """Waits until it has failed to start so often that a start limit would have ended it."""
    before = int(shown(machine, unit, "NRestarts"))
    until(lambda: int(shown(machine, unit, "NRestarts")) >= before + MANY)
    assert shown(machine, unit, "ActiveState") == "activating"


def comes_back(machine, unit):
    until(lambda: shown(machine, unit, "ActiveState") == "active")


def test_a_queue_manager_whose_disk_was_full_while_it_ran_and_while_it_started(machine):
    put(machine, "before")
    machine.do(FILL.format(DATA))
    machine.do("trigmon put Q refused 2>&1 | grep -q 2192")
    restarts = int(shown(machine, "trigmon@QM1", "NRestarts"))
    kill(machine, "trigmon@QM1")
    until(lambda: int(shown(machine, "trigmon@QM1", "NRestarts")) > restarts)
    comes_back(machine, "trigmon@QM1")  # with what lies there for that
    assert bodies(machine) == ["before"]
    machine.do(f"systemctl stop trigmon@QM1.socket trigmon@QM1; rm -f {DATA}/QM1/spare")
    machine.do(FILL.format(DATA))
    machine.do("systemctl start --no-block trigmon@QM1.socket trigmon@QM1")
    fails_often(machine, "trigmon@QM1")
    assert "status=70" in machine.do("journalctl -u trigmon@QM1")
    assert "status=2/" not in machine.do("journalctl -u trigmon@QM1")
    machine.do(f"rm {DATA}/neighbour")
    comes_back(machine, "trigmon@QM1")
    put(machine, "after")
    assert bodies(machine) == ["before", "after"]


def test_a_queue_manager_whose_disk_was_read_only(machine):
    put(machine, "kept")
    machine.do(f"systemctl stop trigmon@QM1.socket trigmon@QM1; mount -o remount,ro {DATA}")
    machine.do("systemctl start --no-block trigmon@QM1.socket trigmon@QM1")
    fails_often(machine, "trigmon@QM1")
    assert "Read-only file system" in machine.do("journalctl -u trigmon@QM1")
    machine.do(f"mount -o remount,rw {DATA}")
    comes_back(machine, "trigmon@QM1")
    assert bodies(machine)[-1:] == ["kept"]


def test_a_monitor_whose_disk_was_read_only(machine):
    comes_back(machine, "trigmon-monitor@QM1")
    machine.do(f"systemctl stop trigmon-monitor@QM1; mount -o remount,ro {MONITORS}")
    machine.do("systemctl start --no-block trigmon-monitor@QM1")
    fails_often(machine, "trigmon-monitor@QM1")
    machine.do(f"mount -o remount,rw {MONITORS}")
    comes_back(machine, "trigmon-monitor@QM1")


def test_settings_that_cannot_work_are_tried_again_by_clients_alone_and_seldom(machine):
    machine.do("printf 'store: {disk_reserve: none}\\n' > /etc/trigmon/trigmon.yaml")
    machine.do("systemctl stop trigmon@QM1.socket trigmon@QM1; systemctl start --no-block trigmon@QM1.service")
    until(lambda: shown(machine, "trigmon@QM1", "ActiveState") == "failed")
    assert [shown(machine, "trigmon@QM1", name) for name in ("ExecMainStatus", "NRestarts")] == ["2", "0"]
    machine.do("systemctl start trigmon@QM1.socket")  # its monitor waits there
    before = int(machine.do("journalctl -u trigmon@QM1 | grep -c 'Starting trigmon'"))
    time.sleep(20)
    assert int(machine.do("journalctl -u trigmon@QM1 | grep -c 'Starting trigmon'")) <= before + 3

"""A disk that was full or read-only for a while ends no service for good: the units as shipped, on a real systemd."""

from __future__ import annotations

import json
import time

import pytest

from tests.launch import booted
from tests.project.test_install import installed
from tests.waiting import until

pytestmark = [pytest.mark.timeout(booted.COMMAND_S), pytest.mark.slow]
DATA, MONITORS = "/var/lib/trigmon", "/var/lib/trigmon-monitor"
DISKS = f"""
mkdir -p {DATA} {MONITORS} /etc/trigmon
mount -t tmpfs -o size=48m,mode=755 tmpfs {DATA}
mount -t tmpfs -o size=8m,mode=755 tmpfs {MONITORS}
printf 'store: {{disk_reserve: 8 MiB}}\\n' > /etc/trigmon/trigmon.yaml
"""
FILL = "head -c 1G /dev/zero >> {}/neighbour 2>/dev/null || true"
MANY = 6
"""More failures than systemd puts up with in a minute by default."""


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    with installed(tmp_path_factory.mktemp("machine"), DISKS) as house:
        house.do("trigmon queue define Q def_persistence=persistent")
        yield house


def put(house, text):
    house.do(f"trigmon put Q {text}")


def bodies(house):
    """What is on the queue."""
    return [json.loads(line)["data"] for line in house.do("trigmon browse Q --output json").splitlines()]


def shown(house, unit, name):
    return house.do(f"systemctl show -P {name} {unit}").strip()


def kill(house, unit):
    """Ends it as a crash does; not by a client, which would start it by its socket."""
    house.do(f"systemctl kill --signal=KILL --kill-whom=main {unit}")


def fails_often(house, unit):
    """Waits until it has failed to start so often that a start limit would have ended it."""
    before = int(shown(house, unit, "NRestarts"))
    until(lambda: int(shown(house, unit, "NRestarts")) >= before + MANY, 180)
    assert shown(house, unit, "ActiveState") == "activating"


def comes_back(house, unit):
    until(lambda: shown(house, unit, "ActiveState") == "active", 120)


def test_a_queue_manager_whose_disk_was_full_while_it_ran_and_while_it_started(house):
    put(house, "before")
    house.do(FILL.format(DATA))
    house.do("trigmon put Q refused 2>&1 | grep -q 2192")
    restarts = int(shown(house, "trigmon@QM1", "NRestarts"))
    kill(house, "trigmon@QM1")
    until(lambda: int(shown(house, "trigmon@QM1", "NRestarts")) > restarts)
    comes_back(house, "trigmon@QM1")  # with what lies there for that
    assert bodies(house) == ["before"]
    house.do(f"systemctl stop trigmon@QM1.socket trigmon@QM1; rm -f {DATA}/QM1/spare")
    house.do(FILL.format(DATA))
    house.do("systemctl start --no-block trigmon@QM1.socket trigmon@QM1")
    fails_often(house, "trigmon@QM1")
    assert "status=70" in house.do("journalctl -u trigmon@QM1")
    assert "status=2/" not in house.do("journalctl -u trigmon@QM1")
    house.do(f"rm {DATA}/neighbour")
    comes_back(house, "trigmon@QM1")
    put(house, "after")
    assert bodies(house) == ["before", "after"]


def test_a_queue_manager_whose_disk_was_read_only(house):
    put(house, "kept")
    house.do(f"systemctl stop trigmon@QM1.socket trigmon@QM1; mount -o remount,ro {DATA}")
    house.do("systemctl start --no-block trigmon@QM1.socket trigmon@QM1")
    fails_often(house, "trigmon@QM1")
    assert "Read-only file system" in house.do("journalctl -u trigmon@QM1")
    house.do(f"mount -o remount,rw {DATA}")
    comes_back(house, "trigmon@QM1")
    assert bodies(house)[-1:] == ["kept"]


def test_a_monitor_whose_disk_was_read_only(house):
    comes_back(house, "trigmon-monitor@QM1")
    house.do(f"systemctl stop trigmon-monitor@QM1; mount -o remount,ro {MONITORS}")
    house.do("systemctl start --no-block trigmon-monitor@QM1")
    fails_often(house, "trigmon-monitor@QM1")
    house.do(f"mount -o remount,rw {MONITORS}")
    comes_back(house, "trigmon-monitor@QM1")


def test_settings_that_cannot_work_are_tried_again_by_clients_alone_and_seldom(house):
    house.do("printf 'store: {disk_reserve: none}\\n' > /etc/trigmon/trigmon.yaml")
    house.do("systemctl stop trigmon@QM1.socket trigmon@QM1; systemctl start --no-block trigmon@QM1.service")
    until(lambda: shown(house, "trigmon@QM1", "ActiveState") == "failed")
    assert [shown(house, "trigmon@QM1", name) for name in ("ExecMainStatus", "NRestarts")] == ["2", "0"]
    house.do("systemctl start trigmon@QM1.socket")  # its monitor waits there
    before = int(house.do("journalctl -u trigmon@QM1 | grep -c 'Starting trigmon'"))
    time.sleep(20)
    assert int(house.do("journalctl -u trigmon@QM1 | grep -c 'Starting trigmon'")) <= before + 3

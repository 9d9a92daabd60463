"""The systemd units are sound, and as locked up as they say."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from trigmon import paths
from trigmon.server.exit_status import EXITS, MISCONFIGURED, STOPPED, STORE_LOST

ANALYZE = shutil.which("systemd-analyze")
UNITS = ["trigmon@.service", "trigmon@.socket", "trigmon-monitor@.service"]

needs_systemd = pytest.mark.skipif(ANALYZE is None, reason="systemd-analyze is not installed")


@pytest.fixture
def installed(tmp_path):
    """Returns the units of an instance, with the command where this installation has it."""
    command = Path(sys.executable).parent / "trigmon"
    for name in UNITS:
        text = (paths.shipped("systemd") / name).read_text()
        (tmp_path / name.replace("@", "@QM1")).write_text(text.replace("/opt/trigmon/bin/trigmon", str(command)))
    return tmp_path


@needs_systemd
def test_systemd_finds_no_fault_with_the_units(installed):
    units = [installed / name.replace("@", "@QM1") for name in UNITS]
    done = subprocess.run([ANALYZE, "verify", "--man=no", *units], capture_output=True, text=True, check=False)
    version = int(subprocess.run([ANALYZE, "--version"], capture_output=True, text=True, check=True).stdout.split()[1])
    of_later = [] if version >= 254 else ["RestartSteps", "RestartMaxDelaySec"]
    ignored = [f"Unknown key '{key}' in section [Service], ignoring." for key in of_later]
    left = [line for line in (done.stdout + done.stderr).splitlines() if not line.endswith(tuple(ignored))]
    assert (done.returncode, left) == (0, [])


@pytest.mark.parametrize(("program", "name"), [("run", "trigmon@.service"), ("monitor", "trigmon-monitor@.service")])
def test_a_unit_is_tried_again_for_ever_after_every_end_that_can_pass(program, name):
    reported = dict(
        re.findall(r"^(Start\w+|Restart\w*)=(.*)$", (paths.shipped("systemd") / name).read_text(), re.MULTILINE)
    )
    final = {int(status) for status in reported.pop("RestartPreventExitStatus").split()}
    assert final <= {MISCONFIGURED, STORE_LOST}
    assert (reported["Restart"], reported["StartLimitIntervalSec"]) == ("on-failure", "0")
    assert "StartLimitBurst" not in reported
    assert float(reported["RestartSec"]) < float(reported["RestartMaxDelaySec"]) <= 60
    ends = [each for each in EXITS if each.program == program]
    assert {each.status: each.is_tried_again for each in ends} == {
        status: status not in (STOPPED, *final) for status in (each.status for each in ends)
    }


@pytest.mark.parametrize("name", ["trigmon@.service", "trigmon-monitor@.service"])
def test_a_start_may_take_as_long_as_the_repair_of_a_store_does(name):
    assert "\nTimeoutStartSec=infinity\n" in (paths.shipped("systemd") / name).read_text()


@needs_systemd
@pytest.mark.parametrize(
    ("name", "drop_in", "most"),
    [
        ("trigmon@.service", "", 1.5),
        ("trigmon-monitor@.service", "", 2.5),
        ("trigmon-monitor@.service", "trigmon-monitor-runas.conf", 3.0),
        ("trigmon-monitor@.service", "trigmon-monitor-root.conf", 3.0),
    ],
)
def test_a_unit_is_exposed_no_more_than_it_must_be(installed, name, drop_in, most):
    unit = installed / name.replace("@", "@QM1")
    if drop_in:
        directory = unit.with_name(f"{unit.name}.d")
        directory.mkdir()
        shutil.copy(paths.shipped("systemd") / drop_in, directory)
    argv = [ANALYZE, "security", "--offline=true", "--no-pager", unit]
    done = subprocess.run(argv, capture_output=True, text=True, check=False).stdout
    exposure = re.search(r"Overall exposure level for \S+: ([0-9.]+)", done)
    assert exposure, done
    assert (most - 1.0 if drop_in else 0.0) < float(exposure[1]) <= most


def test_the_monitors_watchdog_waits_longer_than_the_queue_managers():
    """While the queue manager hangs its monitor waits for an answer, and is not to be killed for that."""
    found = {
        name: int(re.search(r"\nWatchdogSec=([0-9]+)\n", (paths.shipped("systemd") / name).read_text())[1])
        for name in ("trigmon@.service", "trigmon-monitor@.service")
    }
    assert found["trigmon-monitor@.service"] > 2 * found["trigmon@.service"]


def test_the_units_socket_is_where_clients_look(monkeypatch):
    for name in ("TRIGMON_HOME", "TRIGMON_RUNTIME", "XDG_RUNTIME_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("RUNTIME_DIRECTORY", "/run/trigmon")
    text = (paths.shipped("systemd") / "trigmon@.socket").read_text()
    assert f"ListenStream={paths.socket_path('%i')}\n" in text


def test_the_monitors_stop_or_death_leaves_its_keeper_and_its_programs_alone():
    text = (paths.shipped("systemd") / "trigmon-monitor@.service").read_text()
    assert "\nKillMode=process\n" in text

"""The life of the Debian package of debian/build, on a real systemd that is booted in namespaces of its own.

The package is built here, with what pip gets from the package index. The machine inside has no network.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.launch import booted
from tests.waiting import until

HERE = Path(__file__).resolve().parents[2]
UNITS = "trigmon@QM1.socket trigmon@QM1.service trigmon-monitor@QM1.service"
NEXT = "99.0"

CLIENT = """
import sys, time, trigmon
from pathlib import Path
stop, put = Path('/var/cache/stop'), open('/var/cache/put', 'w', buffering=1)
with trigmon.connect('QM1', reconnect_s=300) as qm:
    number = 0
    while not stop.exists():
        qm.put('LOAD', str(number), persistence='persistent')
        print(number, file=put)
        number += 1
"""


class PackagedMachine:
    """A machine on which packages are installed, and what an administrator does there."""

    def __init__(self, machine):
        self.machine = machine

    def do(self, script, **pipe):
        path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        argv = self.machine.argv("env", "-i", path, "HOME=/root", "sh", "-euc", script)
        done = subprocess.run(argv, capture_output=True, timeout=booted.COMMAND_S, **pipe)
        assert done.returncode == 0, (script, done.stdout.decode(), done.stderr.decode())
        return done.stdout.decode()

    def install(self, package):
        self.do("cat > /var/cache/trigmon.deb", input=package.read_bytes())
        self.do("dpkg --install /var/cache/trigmon.deb")

    def wait_for(self, condition):
        self.do(f"n=0; until {condition}; do n=$((n+1)); [ $n -lt 600 ]; sleep 0.3; done")

    def is_there(self, path):
        return self.machine.run("test", "-e", path).returncode == 0


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """Returns the package of this checkout, and the same as one of a later version."""
    if why := booted.why_not() or (not shutil.which("dpkg-deb") and "no dpkg-deb is installed"):
        pytest.skip(f"no package can be played here: {why}")
    directory = tmp_path_factory.mktemp("package")
    subprocess.run([HERE / "debian" / "build", directory], check=True, timeout=1200)
    (first,) = directory.glob("*.deb")
    tree, later = directory / "tree", directory / "later.deb"
    subprocess.run(["dpkg-deb", "-R", first, tree], check=True)
    control = tree / "DEBIAN" / "control"
    lines = [f"Version: {NEXT}" if line.startswith("Version:") else line for line in control.read_text().splitlines()]
    control.write_text("\n".join(lines) + "\n")
    (tree / "opt" / "trigmon" / "later").touch()
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Zgzip", "--build", tree, later], check=True, timeout=600)
    return first, later


@pytest.fixture
def machine(tmp_path):
    with booted.booted(tmp_path) as one:
        yield PackagedMachine(one)


@pytest.mark.slow
def test_a_package_is_installed_upgraded_under_load_and_removed_and_its_data_stays(packages, machine):
    first, later = packages
    machine.install(first)
    machine.do(f"systemctl enable --now {UNITS}")
    machine.do("trigmon queue define LOAD max_q_depth=999999 && trigmon queue define GATE")
    start_a_program_that_waits_at_the_gate(machine)

    load = subprocess.Popen(machine.machine.argv("sh", "-c", f'cd {HERE} && exec {sys.executable} -c "$0"', CLIENT))
    try:
        machine.wait_for("[ $(wc -l < /var/cache/put) -ge 200 ]")
        machine.install(later)
        assert machine.is_there("/opt/trigmon/later")
        assert machine.do(f"systemctl is-active {UNITS}").split() == ["active"] * 3
        before = int(machine.do("wc -l < /var/cache/put"))
        machine.wait_for(f"[ $(wc -l < /var/cache/put) -ge {before + 200} ]")
    finally:
        machine.do("touch /var/cache/stop")
        assert load.wait(600) == 0
    acknowledged = machine.do("cat /var/cache/put").split()
    assert messages(machine) == acknowledged  # each once, in the order of the puts

    machine.do("trigmon put GATE open")
    until(lambda: the_run(machine)["state"] == "exited", 600)
    assert the_run(machine)["exit_status"] == 9  # it ran while both were stopped and replaced

    machine.do("dpkg --remove trigmon")
    assert not machine.is_there("/opt/trigmon")
    assert not machine.is_there("/usr/lib/systemd/system/trigmon@.service")
    assert machine.do("systemctl list-units --plain --no-legend --state=active 'trigmon*.service'") == ""
    assert machine.do("find /etc/systemd/system -name 'trigmon*'") == ""
    assert machine.is_there("/var/lib/trigmon/QM1/qm.db")
    machine.install(first)
    machine.do(f"systemctl enable --now {UNITS}")
    assert messages(machine) == acknowledged
    assert "still in /var/lib/trigmon" in machine.do("dpkg --purge trigmon")
    assert machine.is_there("/var/lib/trigmon/QM1/qm.db")


def messages(machine):
    """Returns the texts of the queue of the load, in the order of getting; none is taken."""
    rows = machine.do("trigmon browse LOAD --count 999999 --output json").splitlines()
    return [json.loads(row)["data"] for row in rows]


def the_run(machine):
    """Returns the record of the only run; an empty state where there is none yet."""
    rows = machine.do("trigmon runs list --all --output json").splitlines()
    (run,) = map(json.loads, rows) if rows else ({"state": ""},)
    return run


def start_a_program_that_waits_at_the_gate(machine):
    machine.do(
        """cat > /usr/local/bin/waits <<'END'
#!/bin/sh
trigmon get "$TRIGMON_QNAME"
until trigmon get GATE; do sleep 0.3; done
exit 9
END
chmod 755 /usr/local/bin/waits
trigmon process define WAITS appl_type=unix appl_id=/usr/local/bin/waits
trigmon queue define WAITS.IN TRIGGER trigger_type=every process_name=WAITS \
    initiation_q_name=SYSTEM.DEFAULT.INITIATION.QUEUE def_persistence=persistent
trigmon put WAITS.IN go"""
    )
    until(lambda: the_run(machine)["state"] == "drained", 600)

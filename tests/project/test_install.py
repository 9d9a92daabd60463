"""The installation of docs/how-to/run-as-a-service.md, followed where a real systemd can be booted in namespaces.

Of its steps only pip's is replaced: there is no network, so the packages of this Python are mounted where the virtual
environment would be.
"""

from __future__ import annotations

import json
import shutil
import sys
import sysconfig
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.launch import booted

HERE = Path(__file__).resolve().parents[2]

PIP = f"""
mkdir -p /opt/trigmon/bin /opt/trigmon/python /opt/trigmon/site /opt/trigmon/checkout
mount --bind {sys.base_prefix} /opt/trigmon/python
mount --bind {sysconfig.get_path("purelib")} /opt/trigmon/site
mount --bind {HERE} /opt/trigmon/checkout
cat > /opt/trigmon/bin/trigmon <<'END'
#!/bin/sh
export PYTHONPATH=/opt/trigmon/checkout:/opt/trigmon/site PYTHONDONTWRITEBYTECODE=1
exec /opt/trigmon/python/bin/python3 -m trigmon "$@"
END
chmod 755 /opt/trigmon/bin/trigmon
"""

INSTALL = """
cd /opt/trigmon/checkout
systemd-sysusers "$PWD"/systemd/trigmon.sysusers.conf
cp systemd/*.service systemd/*.socket /etc/systemd/system/
systemctl daemon-reload
systemctl enable --now trigmon@QM1.socket trigmon@QM1.service trigmon-monitor@QM1.service
useradd alice
usermod -aG trigmon alice
"""

FIRST_JOB = """
cat > /usr/local/bin/hello <<'END'
#!/bin/sh
echo "$TRIGMON_PROCESS got $(/opt/trigmon/bin/trigmon get "$TRIGMON_QNAME") as $(id -un)"
END
chmod 755 /usr/local/bin/hello
trigmon process define HELLO appl_type=unix appl_id=/usr/local/bin/hello
trigmon queue define HELLO.IN TRIGGER trigger_type=every process_name=HELLO \
    initiation_q_name=SYSTEM.DEFAULT.INITIATION.QUEUE def_persistence=persistent
runuser -u alice -- /opt/trigmon/bin/trigmon put HELLO.IN 'a message of alice'
"""

LASTING = """
cat > /usr/local/bin/lasting <<'END'
#!/bin/sh
/opt/trigmon/bin/trigmon get "$TRIGMON_QNAME"
cat /proc/self/cgroup
sleep 3
exit 9
END
chmod 755 /usr/local/bin/lasting
"""


class InstalledMachine:
    """The machine, and what an administrator does on it."""

    def __init__(self, booted_machine):
        self.booted = booted_machine

    def do(self, script):
        path = "PATH=/opt/trigmon/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        done = self.booted.run("env", "-i", path, "HOME=/tmp", "sh", "-euc", script)
        assert done.returncode == 0, (script, done.stdout, done.stderr)
        return done.stdout

    def runs(self):
        return [json.loads(line) for line in self.do("trigmon runs list --all --output json").splitlines()]

    def wait_for_runs(self, number):
        """Waits until so many runs have ended and returns all runs."""
        wait = f"n=0; while [ $(trigmon runs list --all --output json | grep -c exited) -lt {number} ]; do "
        self.do(wait + "n=$((n+1)); [ $n -lt 60 ]; sleep 0.3; done")
        return self.runs()


@contextmanager
def installed(directory, *before):
    """Yields a machine on which these scripts have run, and then the installation."""
    if why := booted.why_not():
        pytest.skip(f"no systemd can be booted here: {why}")
    with booted.booted(directory) as booted_machine:
        machine = InstalledMachine(booted_machine)
        for script in (PIP, *before, INSTALL):
            machine.do(script)
        yield machine


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    with installed(tmp_path_factory.mktemp("machine")) as machine:
        yield machine


def test_both_units_say_themselves_that_they_are_ready(machine):
    for name, status in (
        ("trigmon@QM1", "connections"),
        ("trigmon-monitor@QM1", "serves SYSTEM.DEFAULT.INITIATION.QUEUE"),
    ):
        reported = machine.do(f"systemctl show -p ActiveState -p NRestarts -p StatusText {name}")
        assert "ActiveState=active" in reported
        assert "NRestarts=0" in reported
        assert status in reported


def test_a_members_message_starts_a_job_and_its_output_is_there(machine):
    machine.do(FIRST_JOB)
    (run,) = machine.wait_for_runs(1)
    assert (run["state"], run["exit_status"]) == ("exited", 0)
    assert machine.do(f"trigmon runs logs {run['run_id']}") == "HELLO got a message of alice as trigmon-monitor\n"


def test_a_client_that_comes_while_it_is_stopped_starts_the_queue_manager(machine):
    machine.do("systemctl stop trigmon@QM1.service 2>/dev/null; trigmon queue list")
    assert machine.do("systemctl is-active trigmon@QM1.service") == "active\n"


@pytest.mark.parametrize("name", ["trigmon@QM1", "trigmon-monitor@QM1"])
def test_one_that_hangs_is_started_again_by_its_watchdog(machine, name):
    drop_in = f"/run/systemd/system/{name}.service.d"
    machine.do(f"mkdir {drop_in}; printf '[Service]\\nWatchdogSec=2\\n' > {drop_in}/soon.conf; systemctl daemon-reload")
    machine.do(f"systemctl restart {name}; systemctl kill --signal=STOP --kill-whom=main {name}")
    machine.do(
        f"n=0; until [ $(systemctl show -P NRestarts {name}) = 1 ]; do n=$((n+1)); [ $n -lt 60 ]; sleep 0.3; done"
    )
    machine.do(f"rm -r {drop_in}; systemctl daemon-reload; systemctl restart {name}")


def test_the_journal_finds_what_was_logged_by_its_fields(machine):
    assert "monitor serves" in machine.do("journalctl --output=cat TRIGMON_EVENT='monitor serves' TRIGMON_QMGR=QM1")


@pytest.mark.skipif(shutil.which("dbus-daemon") is None, reason="logind needs a bus, and there is no dbus-daemon")
def test_the_accounts_own_systemd_keeps_a_job_and_its_exit_while_monitor_and_keeper_are_dead(machine):
    machine.do("mkdir -p /etc/trigmon; printf 'monitor:\n  launcher: systemd\n' > /etc/trigmon/trigmon.yaml")
    refused = machine.do("systemctl restart trigmon-monitor@QM1 2>/dev/null || journalctl -u trigmon-monitor@QM1 -n 20")
    assert "loginctl enable-linger" in refused
    machine.do(
        "systemctl start dbus.socket systemd-logind.service; loginctl enable-linger trigmon-monitor\n"
        "own=/run/user/$(id -u trigmon-monitor)/systemd/private\n"
        "n=0; until [ -S $own ]; do n=$((n+1)); [ $n -lt 60 ]; sleep 0.3; done\n"
        "systemctl reset-failed trigmon-monitor@QM1; systemctl restart trigmon-monitor@QM1\n"
        f"{LASTING}\n"
        "trigmon process alter HELLO appl_id=/usr/local/bin/lasting\n"
        "trigmon put HELLO.IN 'outlive them'; sleep 1.5\n"
        "systemctl kill --signal=KILL --kill-whom=all trigmon-monitor@QM1; sleep 3\n"
        "trigmon process alter HELLO appl_id=/usr/local/bin/hello\n"
    )
    newest = max(machine.wait_for_runs(2), key=lambda run: run["run_id"])
    assert (newest["state"], newest["exit_status"]) == ("exited", 9)
    assert f"/trigmon.slice/trigmon-run-{newest['run_id']}.service" in machine.do(
        f"trigmon runs logs {newest['run_id']}"
    )


def test_a_monitor_of_roots_has_jobs_run_as_units_and_as_others_only(machine):
    before = len(machine.runs())
    machine.do(
        "mkdir -p /etc/trigmon /etc/systemd/system/trigmon-monitor@.service.d\n"
        "echo alice > /etc/trigmon/runas\n"
        "printf 'monitor:\\n  launcher: systemd\\n  run_as_file: /etc/trigmon/runas\\n' > /etc/trigmon/trigmon.yaml\n"
        "cp /opt/trigmon/checkout/systemd/trigmon-monitor-root.conf "
        "/etc/systemd/system/trigmon-monitor@.service.d/root.conf\n"
        "systemctl daemon-reload; systemctl restart trigmon-monitor@QM1\n"
        "trigmon process alter HELLO run_as=alice; trigmon put HELLO.IN 'a second one'\n"
    )
    newest = max(machine.wait_for_runs(before + 1), key=lambda run: run["run_id"])
    assert machine.do(f"trigmon runs logs {newest['run_id']}") == "HELLO got a second one as alice\n"
    machine.do("trigmon process alter HELLO run_as= retry=0; trigmon put HELLO.IN 'nobody is named'; sleep 1")
    newest = max(machine.runs(), key=lambda run: run["run_id"])
    assert newest["state"] == "failed"
    assert "without RUNAS" in newest["why"]


def test_the_documentation_has_the_commands_that_are_followed_here():
    text = (HERE / "docs" / "how-to" / "run-as-a-service.md").read_text()
    block = text.split("From a Debian 12", 1)[1].split("```bash\n", 1)[1].split("```", 1)[0]
    reported = [
        part.strip() for line in block.replace("\\\n", "").splitlines() for part in line.split("#")[0].split("&&")
    ]
    followed = [line.strip() for line in (INSTALL + FIRST_JOB).replace("\\\n", "").splitlines()]
    own = ("cd ", "useradd", "cat ", "#!", "echo", "END", "chmod", "runuser")
    wanted = [" ".join(line.split()) for line in followed if line and not line.startswith(own)]
    assert [line for line in wanted if line not in [" ".join(each.split()) for each in reported]] == []
    assert len(wanted) >= 6

"""RUNAS, limits, secrets and the environment on the whole road: a daemon, its monitor, a put, a program."""

from __future__ import annotations

import os
import pwd
import sys
from pathlib import Path

import pytest

from tests.daemons import define
from tests.waiting import until
from trigmon.keeper.subreaper import parent_of
from trigmon.launch.permissions import Grants
from trigmon.mq.calls import Runs

INITQ = "SYSTEM.DEFAULT.INITIATION.QUEUE"
LOOK = "id -u; id -g; id -G; umask; pwd; touch made && stat -c '%U %a' made; env"


class Road:
    """A queue manager that runs as root with its monitor, and users that the monitor's file allows."""

    def __init__(self, daemon):
        self.daemon = daemon
        self.users = daemon.home / "users"
        self.users.write_text("# who runs jobs\nnobody\n")
        self.safe = daemon.home / "secrets"
        self.safe.mkdir(mode=0o700)
        self.work = daemon.home / "work"
        self.work.mkdir()
        os.chown(self.work, pwd.getpwnam("nobody").pw_uid, -1)
        daemon.settings |= {"monitor.run_as_file": self.users, "monitor.secrets_directory": self.safe}
        daemon.settings["monitor.environment"] = "LISTED,SET=by the setting"
        environment = daemon.env | {"LISTED": "yes", "AWS_SECRET_ACCESS_KEY": "key", "PGPASSWORD": "word"}
        daemon.start(env=environment)
        self.connection = daemon.connect()

    def secret(self, name, value):
        (self.safe / name).write_text(value)
        (self.safe / name).chmod(0o600)

    def run(self, name, script, **process):
        """The record of the run that a put caused, once it has ended, and what it printed."""
        job = self.work / name
        job.write_text(f"#!/bin/sh\n{script}\n")
        job.chmod(0o755)
        wanted = {"appl_id": f"./{name}", "working_directory": str(self.work)} | process
        define(self.connection, f"{name}.P", "PROCESS", **wanted)
        armed = {"trigger_control": "on", "trigger_type": "every", "initiation_q_name": INITQ}
        define(self.connection, name, process_name=f"{name}.P", **armed)
        return self.again(name)

    def again(self, name):
        before = len(self.ended(name))
        self.connection.put(name, b"go")
        record = until(lambda: found[0] if len(found := self.ended(name)) > before else None)
        output = Path(record["directory"] or "/nowhere", "stdout")
        return record, output.read_text() if output.exists() else ""

    def ended(self, name):
        rows = self.connection.call(Runs(where={"process_name": f"{name}.P"})).rows
        return [row for row in rows if row["state"] in ("exited", "failed")]


@pytest.fixture
def road(passable):
    made = Road(passable(start=False, with_monitor=True))
    yield made
    made.connection.disconnect()


def test_a_program_runs_as_the_user_its_definition_names(road):
    record, output = road.run("JOB", LOOK, run_as="nobody")
    assert record["exit_status"] == 0, record
    nobody = pwd.getpwnam("nobody")
    uid, gid, groups, umask, directory, made, *variables = output.splitlines()
    assert (int(uid), int(gid)) == (nobody.pw_uid, nobody.pw_gid)
    assert sorted(map(int, groups.split())) == sorted(os.getgrouplist("nobody", nobody.pw_gid))
    assert (umask, directory, made) == ("0077", str(road.work), "nobody 600")
    given = dict(line.split("=", 1) for line in variables if "=" in line)
    assert (given["USER"], given["LOGNAME"], given["HOME"]) == ("nobody", "nobody", nobody.pw_dir)
    assert (given["LISTED"], given["SET"], given["TRIGMON_QNAME"]) == ("yes", "by the setting", "JOB")
    assert not {"AWS_SECRET_ACCESS_KEY", "PGPASSWORD"} & set(given)


def test_one_that_names_nobody_runs_as_the_monitor_with_the_same_clean_environment(road):
    record, output = road.run("JOB", LOOK)
    assert record["exit_status"] == 0, record
    uid, _gid, _groups, umask, *_ = output.splitlines()
    assert (int(uid), umask) == (os.geteuid(), "0077")
    assert "LISTED=yes" in output
    assert "AWS_SECRET_ACCESS_KEY" not in output


def test_a_user_that_is_not_listed_is_refused_until_the_file_lists_it(road):
    record, _ = road.run("JOB", "id -un", run_as="daemon")
    assert record["state"] == "failed"
    assert f"RUNAS(daemon): {road.users} does not list this user; add a line daemon" in record["why"]
    with road.users.open("a") as file:
        file.write("daemon\n")
    record, output = road.again("JOB")
    assert (record["exit_status"], output) == (0, "daemon\n")


def test_a_file_that_others_may_write_lets_nobody_in(road):
    road.users.chmod(0o666)
    record, _ = road.run("JOB", "id", run_as="nobody")
    assert record["state"] == "failed"
    assert f"others may write {road.users}" in record["why"]


def test_secrets_reach_the_program_and_neither_the_ledger_nor_the_log(road):
    road.secret("db", "5ecret")
    where = '"$CREDENTIALS_DIRECTORY"'
    script = f"stat -c '%U %a' {where} {where}/db; cat {where}/db"
    record, _ = road.run("JOB", script, run_as="nobody", secrets="db")
    assert f"nobody may not pass through {road.daemon.data}, below which its secrets lie" in record["why"]
    road.daemon.data.chmod(0o751)
    record, output = road.again("JOB")
    assert (record["exit_status"], output) == (0, "nobody 500\nnobody 400\n5ecret")
    assert not Path(record["directory"], "credentials").exists()
    record, _ = road.run("OWN", f"cat {where}/db; echo $#", secrets="db")
    assert record["exit_status"] == 0
    assert "5ecret" not in str(record)
    assert "5ecret" not in road.daemon.log.read_text()
    missing, _ = road.run("MISSING", "true", secrets="db, key")
    assert f"SECRETS(key): there is no {road.safe}/key; give the monitor's unit LoadCredential=key:" in missing["why"]


def test_a_run_says_that_its_limit_of_processor_time_ended_it(stage):
    job = stage.program(f"exec {sys.executable} -c 'while True: pass'")
    queue = stage.queue(job, cpu_limit_s=1)
    stage.watch()
    stage.qm.put(queue, b"go")
    (record,) = stage.wait_for(state="exited")
    assert record["why"] == "ended by its limit of 1 s of processor time: killed by SIGXCPU"


def test_a_program_that_needs_more_memory_than_it_may_have_says_so_itself(stage):
    job = stage.program(f"exec {sys.executable} -c 'bytearray(400 << 20)'")
    queue = stage.queue(job, memory_limit_mib=200)
    stage.watch()
    stage.qm.put(queue, b"go")
    (record,) = stage.wait_for(state="exited", process_name=f"{queue}.P")
    assert record["exit_status"] == 1
    assert record["stderr_tail"].endswith("MemoryError\n")


def test_the_secrets_of_a_run_whose_keeper_died_go_when_it_is_found_ended(stage):
    (stage.directory / "db").write_text("5ecret")
    (stage.directory / "db").chmod(0o600)
    job = stage.program("while [ ! -e gate ]; do sleep 0.02; done")
    queue = stage.queue(job, secrets="db", working_directory=str(stage.directory))
    stage.watch(grants=Grants(secrets_directory=stage.directory), stop_runs=False)
    stage.qm.put(queue, b"go")
    (record,) = stage.wait_for(state="started", process_name=f"{queue}.P")
    keeper = parent_of(record["pid"])
    parent = parent_of(keeper)
    os.kill(keeper, 19)  # else it would be the next one's parent
    os.kill(parent, 9)
    os.kill(keeper, 9)
    given = Path(record["directory"], "credentials")
    assert (given / "db").exists()
    (stage.directory / "gate").touch()
    stage.wait_for(state="unknown", process_name=f"{queue}.P")
    assert not given.exists()

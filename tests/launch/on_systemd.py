"""Programs as units of a real systemd. Run inside a booted machine (tests/launch/booted.py) by test_on_systemd.py."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.launch import test_keeper
from tests.launch.keeper_machine import NAME, KeeperMachine, is_gone
from tests.launch.test_keeper import deaf  # noqa: F401 - deaf is a fixture
from tests.processes import cpu_seconds
from tests.waiting import until
from trigmon.keeper import protocol, run_directory, systemd_bus, systemd_unit


@pytest.fixture
def machine(tmp_path):
    made = KeeperMachine(tmp_path, protocol.SYSTEMD)
    yield made
    made.end()
    until(lambda: not units())  # here, other than in life, the next run is called the same


def show(run_id, *names):
    """Properties of a run's unit."""
    return systemctl("show", systemd_unit.name_of(run_id), *(f"--property={name}" for name in names)).splitlines()


def systemctl(*argv):
    return subprocess.run(["systemctl", *argv], capture_output=True, text=True, check=False).stdout


def units():
    """Those that are there. One that was let go is forgotten when systemd looks at it next.

    That is when its control group is empty, which cgroup version 1 tells nobody in a namespace: here a stop tells it.
    """
    found = json.loads(systemctl("list-units", "--all", "--output=json", systemd_unit.PATTERN))
    for each in found:
        if each["active"] == "inactive":
            systemctl("stop", each["unit"])
    return found


class TestAsEveryProgram:
    """What holds for a process of the keeper's holds for a unit."""

    starting, ending = test_keeper.TestStarting, test_keeper.TestEnding
    test_files = starting.test_a_program_gets_its_arguments_directory_environment_and_two_files_for_its_output
    test_claim = starting.test_it_is_claimed_before_and_its_process_and_its_end_are_reported_and_written
    test_claimed = starting.test_a_run_that_has_been_claimed_is_not_started
    test_once = starting.test_a_run_is_started_once_however_often_it_is_asked_for
    test_session = starting.test_a_program_leads_its_own_session_reads_nothing_and_is_deaf_to_no_signal
    test_no_files = starting.test_files_that_cannot_be_made_are_reported_and_are_no_fault_of_the_program
    test_statuses = ending.test_exit_statuses_and_signals_are_reported_as_they_are
    test_time = ending.test_a_program_that_takes_too_long_is_ended_with_its_whole_group
    test_grace = ending.test_a_program_that_does_not_listen_is_killed_after_the_grace
    test_cleaning = ending.test_a_program_that_cleans_up_in_its_grace_ends_with_its_own_status
    test_stopped = ending.test_a_stopped_program_is_ended_too
    test_left = test_keeper.TestWhatProgramsLeaveBehind.test_what_does_not_listen_is_killed_after_the_grace_of_its_run
    coming = test_keeper.TestMonitorsComeAndGo
    test_on = coming.test_programs_run_on_and_the_next_monitor_gets_them_and_their_ends
    test_away = coming.test_what_ended_while_no_monitor_ran_is_written


class TestStarting:
    def test_it_has_a_control_group_of_its_own_in_our_slice_and_its_unit_is_gone_afterwards(self, machine):
        machine.shell("r", "cat /proc/self/cgroup; read x < gate", working_directory=machine.directory)
        machine.wait_for_output("r")
        assert f"/{systemd_unit.SLICE}/{systemd_unit.name_of('r')}" in machine.output("r")
        machine.keeper.stop("r", protocol.STOPPED, 1)
        machine.wait_for("ended", "r")
        until(lambda: not units())

    def test_words_and_variables_arrive_as_they_were_written(self, machine):
        words = ["$HOME", "${HOME}", "%n", "a  b", "'", '"', "\\", "", "-x", "é", "$$", "line\nline"]
        text = 'printf "%s|" "$@"; printf %s "$OWN"'
        machine.start("r", "/bin/sh", "-c", text, "sh", *words, OWN='a"b\\c`d$e\n é;#')
        assert machine.wait_for("ended", "r")["status"] == 0
        assert machine.output("r") == "".join(f"{word}|" for word in words) + 'a"b\\c`d$e\n é;#'

    def test_no_variable_is_on_the_bus_and_its_file_is_gone_when_the_program_runs(self, machine):
        machine.shell("r", 'echo "$PASSWORD"; sleep 60', PASSWORD="open sesame")
        machine.wait_for_output("r")
        machine.wait_for("started", "r")
        assert "sesame" in machine.output("r")
        assert "sesame" not in systemctl("show", systemd_unit.name_of("r"))
        assert not (machine.run("r") / systemd_unit.ENVIRONMENT).exists()

    @pytest.mark.parametrize(("program", "why"), [("missing", "cannot be executed"), ("text", "cannot be executed")])
    def test_what_cannot_be_executed_is_reported_with_its_reason_and_written(self, machine, program, why):
        (machine.directory / "text").write_text("echo\n")
        (machine.directory / "text").chmod(0o755)
        machine.start("r", machine.directory / program)
        assert why in machine.wait_for("failed", "r")["error"]
        assert why in run_directory.read_exit(machine.run("r"))["error"]
        until(lambda: not units())

    def test_a_working_directory_that_is_missing_is_reported(self, machine):
        machine.start("r", "/bin/true", working_directory=machine.directory / "gone")
        assert "its working directory cannot be entered" in machine.wait_for("failed", "r")["error"]

    def test_what_systemd_refuses_is_reported_in_its_words(self, machine):
        machine.start("r", "bin/relative")
        assert "nor an absolute path" in machine.wait_for("failed", "r")["error"]

    def test_a_program_that_ends_with_a_status_of_systemds_own_was_a_program(self, machine):
        machine.shell("r", "sleep 0.3; exit 203")
        assert machine.wait_for("ended", "r")["status"] == 203


class TestLimits:
    def test_memory_is_limited_for_the_whole_of_a_run(self, machine):
        one = "cat /sys/fs/cgroup$(sed -n s/^0:://p /proc/self/cgroup)/memory.max"
        several = "cat /sys/fs/cgroup/memory$(sed -n s/.*:memory://p /proc/self/cgroup)/memory.limit_in_bytes"
        machine.shell("r", f"{one} || {several}", asks={"memory_limit_mib": 64})
        machine.wait_for("ended", "r")
        assert machine.output("r").split() == [str(64 << 20)]

    def test_a_run_that_needs_more_memory_is_killed(self, machine):
        machine.shell(
            "r", "head -c 200000000 /dev/zero | tail -c 200000000 > /dev/null; exit $?", asks={"memory_limit_mib": 64}
        )
        assert machine.wait_for("ended", "r")["status"] != 0

    def test_processor_time_and_open_files_are_limited_for_each_process(self, machine):
        machine.shell(
            "r",
            "ulimit -n; ulimit -Hn; ulimit -St; while :; do :; done",
            asks={"open_files_limit": 77, "cpu_limit_s": 1},
        )
        ended = machine.wait_for("ended", "r")
        assert (ended["status"], ended["why"]) == (-signal.SIGXCPU, protocol.cpu_limit(1))
        assert machine.output("r").split() == ["77", "77", "1"]

    def test_it_runs_as_another_user_with_that_users_groups_and_its_files_stay_ours(self, machine):
        machine.shell("r", "id -un; umask", working_directory="/", asks={"user": "daemon"})
        assert machine.wait_for("ended", "r")["status"] == 0
        assert machine.output("r").split() == ["daemon", "0077"]

    def test_one_that_runs_as_another_user_may_open_its_output_anew(self, machine):
        machine.shell("r", "echo more > /dev/stdout", working_directory="/", asks={"user": "daemon"})
        assert machine.wait_for("ended", "r")["status"] == 0
        assert machine.output("r") == "more\n"

    def test_a_user_that_is_not_there_is_reported(self, machine):
        machine.shell("r", "id -un", asks={"user": "nobody-of-this-name"})
        assert "its user cannot be taken on" in machine.wait_for("failed", "r")["error"]

    def test_secrets_are_files_by_their_names_for_its_user_alone(self, machine):
        secret = machine.directory / "secret"
        secret.write_text("open sesame")
        secret.chmod(0o600)
        machine.shell(
            "r",
            'cat "$CREDENTIALS_DIRECTORY/db"',
            working_directory="/",
            asks={"user": "daemon", "secrets": {"db": str(secret)}},
        )
        assert machine.wait_for("ended", "r")["status"] == 0
        assert machine.output("r") == "open sesame"

    def test_a_program_gains_no_rights(self, machine):
        machine.shell("r", "grep NoNewPrivs /proc/self/status")
        machine.wait_for("ended", "r")
        assert machine.output("r").split() == ["NoNewPrivs:", "1"]


class TestTheKeeperDies:
    def test_the_next_one_finds_the_run_and_tells_its_end(self, machine):
        machine.shell("r", "while [ ! -e gate ]; do sleep 0.02; done; exit 6", working_directory=machine.directory)
        machine.wait_for("started", "r")
        machine.keeper_is_killed(with_its_parent=True)
        assert machine.keepers.there(NAME).runs == {"r"}
        (machine.directory / "gate").touch()
        assert machine.wait_for("ended", "r")["status"] == 6
        until(lambda: not units())

    @pytest.mark.parametrize("text", ["exit 0", "exit 6", "kill -9 $$", "kill -TERM $$"])
    def test_how_a_run_ended_while_neither_monitor_nor_keeper_ran_is_known(self, machine, text):
        machine.shell("r", f"while [ ! -e gate ]; do sleep 0.02; done; {text}", working_directory=machine.directory)
        pid = machine.wait_for("started", "r")["pid"]
        machine.keeper_is_killed(with_its_parent=True)
        (machine.directory / "gate").touch()
        until(lambda: is_gone(pid))
        assert machine.keepers.there(NAME).runs == set()
        exit_fields = run_directory.read_exit(machine.run("r"))
        wanted = {"exit 0": 0, "exit 6": 6, "kill -9 $$": -9, "kill -TERM $$": -15}[text]
        assert (exit_fields["status"], exit_fields["pid"], exit_fields["why"]) == (wanted, pid, "")
        assert 0 < exit_fields["start_ms"] <= exit_fields["end_ms"] <= time.time() * 1000
        until(lambda: not units())

    def test_systemd_keeps_the_time_limit_while_no_keeper_runs(self, machine):
        machine.shell("r", "sleep 60", time_limit_s=1.5)
        pid = machine.wait_for("started", "r")["pid"]
        machine.keeper_is_killed(with_its_parent=True)
        until(lambda: is_gone(pid))
        machine.keepers.there(NAME)
        exit_fields = run_directory.read_exit(machine.run("r"))
        assert (exit_fields["status"], exit_fields["why"], exit_fields["limit_s"]) == (
            -signal.SIGTERM,
            protocol.TIME_LIMIT,
            1.5,
        )

    def test_a_run_that_was_to_end_is_still_killed_after_its_grace_and_why_is_known(self, machine):
        machine.shell("r", "trap '' TERM; echo deaf; while :; do sleep 0.05; done")
        machine.wait_for_output("r")
        machine.keeper.stop("r", protocol.CANCELLED, 1.0)
        until(lambda: "ends" in run_directory.read(machine.run("r")))
        machine.keeper_is_killed(with_its_parent=True)
        assert machine.keepers.there(NAME).runs == {"r"}
        ended = machine.wait_for("ended", "r")
        assert (ended["status"], ended["why"]) == (-signal.SIGKILL, protocol.CANCELLED)

    def test_one_that_is_asked_to_end_leaves_its_units_alone(self, machine):
        machine.shell("r", "while [ ! -e gate ]; do sleep 0.02; done; exit 6", working_directory=machine.directory)
        pid = machine.wait_for("started", "r")["pid"]
        parent = machine.parent
        os.kill(machine.pid, signal.SIGTERM)
        os.waitpid(parent, 0)
        assert not is_gone(pid)
        machine.monitor_is_killed()
        assert machine.keeper.runs == {"r"}
        (machine.directory / "gate").touch()
        assert machine.wait_for("ended", "r")["status"] == 6

    def test_a_unit_that_an_operator_stopped_meanwhile_is_not_made_up_for(self, machine):
        machine.shell("r", "sleep 60")
        machine.wait_for("started", "r")
        machine.keeper_is_killed(with_its_parent=True)
        systemctl("stop", systemd_unit.name_of("r"))
        assert machine.keepers.there(NAME).runs == set()
        assert run_directory.read_exit(machine.run("r")) is None

    def test_units_of_other_keepers_are_left_to_them(self, machine, tmp_path):
        (tmp_path / "other").mkdir()
        other = KeeperMachine(tmp_path / "other", protocol.SYSTEMD)
        other.shell("theirs", "sleep 60")
        other.wait_for("started", "theirs")
        assert machine.keepers.there(NAME).runs == set()
        other.end()


def test_a_keeper_that_ends_at_once_leaves_no_unit_of_a_run_whose_end_is_written(tmp_path):
    """Several processes: systemd tells of the unit behind its end, one time in sixty to a keeper that is gone."""
    for number in range(40):
        (tmp_path / str(number)).mkdir()
        machine = KeeperMachine(tmp_path / str(number), protocol.SYSTEMD)
        machine.shell("r", "sleep 60 & sleep 60; :")
        machine.wait_for("started", "r")
        machine.end()
        until(lambda: not units())


class TestSystemdChanges:
    def test_a_connection_that_systemd_closes_is_made_again_and_nothing_is_missed(self, machine):
        machine.shell("r", "while [ ! -e gate ]; do sleep 0.02; done; exit 6", working_directory=machine.directory)
        machine.wait_for("started", "r")
        systemctl("daemon-reexec")
        (machine.directory / "gate").touch()
        assert machine.wait_for("ended", "r")["status"] == 6

    def test_a_keeper_that_has_no_unit_rests_when_systemd_has_closed_its_connection(self, machine):
        machine.shell("r", "exit 0")
        machine.wait_for("ended", "r")
        until(lambda: not units())
        systemctl("daemon-reexec")
        time.sleep(1.5)  # longer than it waits before it would connect again
        before_s = cpu_seconds(machine.pid)
        time.sleep(1)
        assert cpu_seconds(machine.pid) - before_s < 0.3

    def test_a_unit_that_an_operator_stops_has_ended_by_sigterm(self, machine):
        machine.shell("r", "sleep 60")
        machine.wait_for("started", "r")
        systemctl("stop", systemd_unit.name_of("r"))
        assert machine.wait_for("ended", "r")["status"] == -signal.SIGTERM


def test_the_journal_knows_a_runs_lines_by_its_fields(machine):
    machine.shell("journal", "systemd-cat sh -c 'echo hello; sleep 0.3'; exit 3", TRIGMON_QNAME="ORDERS")
    machine.wait_for("ended", "journal")
    argv = ["journalctl", "--output=cat", "TRIGMON_RUN=journal", "TRIGMON_QUEUE=ORDERS"]

    def printed():
        return subprocess.run(argv, capture_output=True, text=True, check=False).stdout

    until(lambda: printed() == "hello\n")


def test_systemd_answers_here():
    assert systemd_bus.why_not() == ""
    assert Path(systemd_bus.socket_path()).is_socket()


def test_what_has_to_be_killed_leaves_no_unit_though_its_monitor_goes_meanwhile(machine):
    machine.shell("r", "(trap '' TERM; echo deaf; while :; do sleep 0.05; done) & echo $!; sleep 0.1", grace_s=0.5)
    machine.wait_for("ended", "r")
    machine.end()
    until(lambda: not units())

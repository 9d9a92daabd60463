"""A real keeper and real programs: what it starts, what it sees, what it leaves behind."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time

import pytest

from tests.launch.keeper_machine import NAME, WAIT_S, KeeperMachine, is_gone
from tests.processes import stat_of
from tests.waiting import until
from trigmon.keeper import protocol, run_directory
from trigmon.launch.keeper_client import Keepers


@pytest.fixture
def deaf():
    """This process ignores what a shell has its background jobs ignore."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGQUIT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


class TestStarting:
    def test_a_program_gets_its_arguments_directory_environment_and_two_files_for_its_output(self, machine, tmp_path):
        text = 'echo "$#|$1|$OWN|$(pwd)"; echo oh >&2; exit 3'
        machine.start("r", "/bin/sh", "-c", text, "sh", "a 'b' $HOME", OWN="é", working_directory=tmp_path)
        ended = machine.wait_for("ended", "r")
        assert ended["status"] == 3
        assert machine.output("r") == f"1|a 'b' $HOME|é|{tmp_path}\n"
        assert machine.output("r", "stderr") == "oh\n"

    def test_it_is_claimed_before_and_its_process_and_its_end_are_reported_and_written(self, machine):
        machine.shell("r", "exit 4")
        started = machine.wait_for("started", "r")
        claim = until(lambda: found if (found := run_directory.read(machine.run("r"))).get("pid") else None)
        assert (claim["keeper"], claim["pid"], claim["start_ms"]) == (NAME, started["pid"], started["start_ms"])
        ended = machine.wait_for("ended", "r")
        assert run_directory.read_exit(machine.run("r")) == {key: value for key, value in ended.items() if key != "say"}
        assert ended["start_ms"] <= ended["end_ms"]

    def test_a_run_that_has_been_claimed_is_not_started(self, machine):
        machine.run("r").mkdir(parents=True)
        machine.shell("r", "true")
        machine.wait_for("taken", "r")
        assert list(machine.run("r").iterdir()) == []

    def test_a_run_is_started_once_however_often_it_is_asked_for(self, machine):
        for _ in range(3):
            machine.shell("r", "echo once")
        machine.wait_for("taken", "r")
        machine.wait_for("ended", "r")
        assert machine.output("r") == "once\n"

    def test_a_program_leads_its_own_session_reads_nothing_and_is_deaf_to_no_signal(self, machine, deaf):
        machine.shell("r", "cat; awk '{print $6}' /proc/$$/stat; grep -E 'Sig(Ign|Blk)' /proc/$$/status | cut -f2")
        started = machine.wait_for("started", "r")
        assert machine.wait_for("ended", "r")["status"] == 0
        session, *masks = machine.output("r").split()
        assert session == str(started["pid"])
        plain = (1 << 31) - 1  # behind them are the C library's own, which its posix_spawn leaves ignored
        assert [int(mask, 16) & plain for mask in masks] == [0, 0]

    @pytest.mark.parametrize(
        ("program", "number"), [("missing", errno.ENOENT), ("text", errno.ENOEXEC), ("plain", errno.EACCES)]
    )
    def test_what_the_kernel_will_not_execute_is_reported_with_its_reason_and_written(self, machine, program, number):
        (machine.directory / "text").write_text("echo\n")
        (machine.directory / "text").chmod(0o755)
        (machine.directory / "plain").write_text("#!/bin/sh\n")
        machine.start("r", machine.directory / program)
        assert machine.wait_for("failed", "r")["errno"] == number
        assert run_directory.read_exit(machine.run("r"))["errno"] == number

    def test_a_working_directory_that_is_missing_is_reported(self, machine):
        machine.start("r", "/bin/true", working_directory=machine.directory / "gone")
        assert machine.wait_for("failed", "r")["errno"] == errno.ENOENT

    def test_files_that_cannot_be_made_are_reported_and_are_no_fault_of_the_program(self, machine):
        (machine.directory / "runs").write_text("in the way")
        machine.start("r", "/bin/true")
        failed = machine.wait_for("failed", "r")
        assert failed["errno"] == 0
        assert "runs" in failed["error"]
        (machine.directory / "runs").unlink()

    def test_an_order_that_makes_no_sense_hinders_no_other(self, machine):
        machine.start("bad", "/bin/echo", "nul\0")
        machine.shell("r", "true")
        assert "null byte" in machine.wait_for("failed", "bad")["error"]
        assert machine.wait_for("ended", "r")["status"] == 0


class TestEnding:
    def test_exit_statuses_and_signals_are_reported_as_they_are(self, machine):
        machine.shell("r1", "exit 255")
        machine.shell("r2", "kill -9 $$")
        assert machine.wait_for("ended", "r1")["status"] == 255
        assert machine.wait_for("ended", "r2")["status"] == -signal.SIGKILL

    def test_a_thousand_programs_leave_neither_zombie_nor_descriptor(self, machine):
        machine.shell("first", "exit 0")
        machine.wait_for("ended", "first")
        before = machine.descriptors()
        for number in range(1000):
            machine.start(f"r{number}", "/bin/sh", "-c", f"exit {number % 256}")
        statuses = [machine.wait_for("ended", f"r{number}")["status"] for number in range(1000)]
        assert statuses == [number % 256 for number in range(1000)]
        assert machine.children() == set()
        until(lambda: machine.descriptors() == before)

    def test_a_program_that_takes_too_long_is_ended_with_its_whole_group(self, machine):
        machine.shell("r", "sleep 60 & echo $!; wait", time_limit_s=0.3)
        (grandchild,) = machine.wait_for_output("r")
        ended = machine.wait_for("ended", "r")
        assert (ended["status"], ended["why"], ended["limit_s"]) == (-signal.SIGTERM, protocol.TIME_LIMIT, 0.3)
        until(lambda: is_gone(grandchild))

    def test_a_program_that_does_not_listen_is_killed_after_the_grace(self, machine):
        began = time.monotonic()
        machine.shell("r", "trap '' TERM; echo deaf; while :; do sleep 0.05; done", time_limit_s=0.3, grace_s=0.5)
        ended = machine.wait_for("ended", "r")
        assert (ended["status"], ended["why"]) == (-signal.SIGKILL, protocol.TIME_LIMIT)
        assert time.monotonic() - began >= 0.8

    def test_a_program_that_cleans_up_in_its_grace_ends_with_its_own_status(self, machine):
        machine.shell("r", "trap 'echo clean; exit 7' TERM; echo; while :; do sleep 0.02; done")
        machine.wait_for_output("r")
        machine.keeper.stop("r", protocol.STOPPED, WAIT_S)
        ended = machine.wait_for("ended", "r")
        assert (ended["status"], ended["why"]) == (7, protocol.STOPPED)
        assert machine.output("r").endswith("clean\n")

    def test_a_stopped_program_is_ended_too(self, machine):
        machine.shell("r", "kill -STOP $$")
        pid = machine.wait_for("started", "r")["pid"]
        until(lambda: stat_of(pid)[0] == "T")
        machine.keeper.stop("r", protocol.STOPPED, WAIT_S)
        assert machine.wait_for("ended", "r")["status"] == -signal.SIGTERM


class TestWhatProgramsLeaveBehind:
    LEAVES = "sleep 60 & echo $!; setsid sleep 60 & echo $!; (setsid sh -c 'echo $$; sleep 60; :' &); sleep 0.1"

    def test_it_ends_when_the_program_has_wherever_it_hid(self, machine):
        machine.shell("r", f"{self.LEAVES}; exit 5")
        assert machine.wait_for("ended", "r")["status"] == 5
        left = machine.wait_for_output("r", 3)
        until(lambda: all(is_gone(pid) for pid in left))
        until(lambda: machine.children() == set())

    def test_it_is_left_alone_while_the_program_runs(self, machine):
        machine.shell("other", "exit 0")
        text = f"{self.LEAVES}; touch here; while [ ! -e gate ]; do sleep 0.02; done"
        machine.shell("r2", text, working_directory=machine.directory)
        left = machine.wait_for_output("r2", 3)
        until(lambda: (machine.directory / "here").exists())
        machine.shell("third", "exit 0")
        machine.wait_for("ended", "third")
        time.sleep(1.2)
        assert not any(is_gone(pid) for pid in left)
        (machine.directory / "gate").touch()
        machine.wait_for("ended", "r2")
        until(lambda: all(is_gone(pid) for pid in left))

    def test_what_names_no_run_ends_with_the_last_program(self, machine):
        hides = "(env -i setsid sh -c 'echo $$; exec sleep 60' &); sleep 0.1"
        machine.shell("r", f"{hides}; true")
        machine.shell("r2", "while [ ! -e gate ]; do sleep 0.02; done", working_directory=machine.directory)
        (left,) = machine.wait_for_output("r")
        machine.wait_for("ended", "r")
        time.sleep(0.2)
        assert not is_gone(left)
        (machine.directory / "gate").touch()
        machine.wait_for("ended", "r2")
        until(lambda: is_gone(left))

    def test_what_does_not_listen_is_killed_after_the_grace_of_its_run(self, machine):
        machine.shell("r", "(trap '' TERM; echo deaf; while :; do sleep 0.05; done) & echo $!; sleep 0.1", grace_s=0.5)
        machine.wait_for("ended", "r")
        left = next(word for word in machine.wait_for_output("r", 2) if word.isdecimal())
        assert not is_gone(left)
        until(lambda: is_gone(left))


class TestMonitorsComeAndGo:
    def test_programs_run_on_and_the_next_monitor_gets_them_and_their_ends(self, machine):
        machine.shell("r", "while [ ! -e gate ]; do sleep 0.02; done; exit 6", working_directory=machine.directory)
        pid = machine.pid
        machine.wait_for("started", "r")
        machine.monitor_is_killed()
        assert machine.keeper.runs == {"r"}
        assert machine.pid == pid
        (machine.directory / "gate").touch()
        assert machine.wait_for("ended", "r")["status"] == 6
        assert machine.keeper.runs == set()

    def test_what_ended_while_no_monitor_ran_is_written(self, machine):
        machine.shell("r", "sleep 0.2; exit 6")
        machine.wait_for("started", "r")
        machine.monitor_is_killed()
        assert until(lambda: run_directory.read_exit(machine.run("r")))["status"] == 6

    def test_what_a_killed_monitor_had_asked_for_is_done_before_the_next_is_greeted(self, machine):
        machine.shell("first", "exit 0")
        pid = machine.pid
        time.sleep(0.5)  # what the keeper tells of its end is left unread, which resets the connection
        os.kill(pid, signal.SIGSTOP)
        machine.shell("r", "sleep 60")
        machine.keeper._link.close()
        machine.heard.clear()
        machine.keepers = Keepers(machine.monitors, NAME)
        subprocess.Popen(["/bin/sh", "-c", f"sleep 0.3; kill -CONT {pid}"]).wait()
        assert "r" in machine.keeper.runs

    def test_a_keeper_with_nothing_to_keep_ends_with_its_monitor(self, machine):
        machine.shell("r", "true")
        machine.wait_for("ended", "r")
        pid, parent = machine.pid, machine.parent
        machine.keepers.close()
        assert os.waitpid(parent, 0) == (parent, 0)
        assert is_gone(pid)

    def test_one_that_keeps_something_stays_until_that_has_ended_and_then_does_not_stay_long(self, machine):
        machine.shell("r", "while [ ! -e gate ]; do sleep 0.02; done", working_directory=machine.directory)
        machine.wait_for("started", "r")
        pid, parent = machine.pid, machine.parent
        machine.keepers.close()
        time.sleep(0.3)
        assert not is_gone(pid)
        (machine.directory / "gate").touch()
        began = time.monotonic()
        assert os.waitpid(parent, 0) == (parent, 0)
        assert time.monotonic() - began < 7
        assert run_directory.read_exit(machine.run("r"))["status"] == 0

    def test_a_path_of_any_length_will_do(self, tmp_path):
        long = tmp_path / ("d" * 120)
        long.mkdir()
        machine = KeeperMachine(long)
        machine.shell("r", "true")
        assert machine.wait_for("ended", "r")["status"] == 0
        machine.end()

    def test_its_socket_is_open_to_its_owner_alone(self, machine):
        assert machine.pid
        assert (machine.monitors / NAME).stat().st_mode & 0o777 == 0o600


def test_it_is_small_and_started_quickly():
    """What it imports is paid while the first launch of a monitor waits."""
    code = "import sys, trigmon.keeper.main; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"msgspec", "pydantic", "structlog", "asyncio", "trigmon.mq", "dataclasses"} & set(done)

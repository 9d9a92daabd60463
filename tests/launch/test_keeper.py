"""A real keeper and real programs: what it starts, what it sees, what it leaves behind."""

from __future__ import annotations

import errno
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.launch.keeper_machine import NAME, WAIT_S, KeeperMachine, is_gone
from tests.waiting import until
from trigmon.keeper import protocol, run_directory
from trigmon.keeper.process import ProgramProcess
from trigmon.launch.keeper_client import KeeperGone, Keepers


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
        until(lambda: Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T")
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


class TestTheKeeperDies:
    GATED = "while [ ! -e gate ]; do sleep 0.02; done; exit 7"

    def test_killed_alone_its_programs_are_the_next_ones_and_every_end_is_known(self, machine):
        for run_id in ("r1", "r2"):
            machine.shell(run_id, self.GATED, working_directory=machine.directory)
        started = [machine.wait_for("started", run_id) for run_id in ("r1", "r2")]
        first = machine.pid
        machine.keeper_is_killed()
        assert machine.keeper.runs == {"r1", "r2"}
        assert machine.pid != first
        (machine.directory / "gate").touch()
        ended = [machine.wait_for("ended", run_id) for run_id in ("r1", "r2")]
        assert [(frame["status"], frame["pid"], frame["start_ms"]) for frame in ended] == [
            (7, frame["pid"], frame["start_ms"]) for frame in started
        ]
        assert run_directory.read_exit(machine.run("r1"))["status"] == 7
        until(lambda: all(is_gone(frame["pid"]) for frame in started))

    def test_after_hundreds_of_programs_the_next_one_still_knows_the_one_that_runs(self, machine):
        machine.shell("r", self.GATED, working_directory=machine.directory)
        for number in range(200):  # some hundreds of messages more than a socket holds
            machine.shell(f"r{number}", "exit 0")
        for number in range(200):
            machine.wait_for("ended", f"r{number}")
        machine.keeper_is_killed()
        assert machine.keeper.runs == {"r"}
        (machine.directory / "gate").touch()
        assert machine.wait_for("ended", "r")["status"] == 7

    def test_runs_with_long_paths_cost_no_time_and_no_end(self, machine, tmp_path):
        machine.shell("r", self.GATED, working_directory=machine.directory)
        short, long = machine.run("r"), tmp_path.joinpath(*(["ü" * 100] * 15))
        long.mkdir(parents=True)
        machine.run = lambda run_id: short if run_id == "r" else long / "runs" / run_id
        began = time.monotonic()
        for number in range(40):
            machine.shell(f"r{number}", "exit 0")
        for number in range(40):
            machine.wait_for("ended", f"r{number}")
        assert time.monotonic() - began < 30  # a socket that nobody reads from takes a second for each message
        machine.keeper_is_killed()
        assert machine.keeper.runs == {"r"}
        (machine.directory / "gate").touch()
        assert machine.wait_for("ended", "r")["status"] == 7

    def test_what_ends_while_it_is_dying_is_known_however_often_it_dies(self, machine):
        machine.shell("r0", "true")
        for number in range(1, 9):
            pid = machine.pid
            machine.shell(f"r{number}", f"exit {number}")
            program = machine.wait_for("started", f"r{number}")["pid"]
            os.kill(pid, signal.SIGSTOP)
            until(lambda program=program: is_ended(program))
            machine.keeper_is_killed()
            assert until(lambda number=number: run_directory.read_exit(machine.run(f"r{number}")))["status"] == number

    def test_what_many_programs_ended_with_while_it_was_dying_is_known(self, machine):
        for number in range(60):
            machine.shell(f"r{number}", "sleep 60")
        programs = [machine.wait_for("started", f"r{number}")["pid"] for number in range(60)]
        os.kill(machine.pid, signal.SIGSTOP)
        for program in programs:
            os.kill(program, signal.SIGKILL)
        until(lambda: all(is_ended(program) for program in programs))
        machine.keeper_is_killed()
        for number in range(60):
            ended = until(lambda number=number: run_directory.read_exit(machine.run(f"r{number}")))
            assert ended["status"] == -signal.SIGKILL

    def test_a_keeper_whose_parent_was_killed_loses_nothing_when_it_is_killed_later(self, machine):
        machine.shell("r", self.GATED, working_directory=machine.directory)
        machine.wait_for("started", "r")
        pid, parent, keeper = machine.pid, machine.parent, machine.keeper
        os.kill(parent, signal.SIGKILL)
        with pytest.raises(KeeperGone):  # it is the parent now
            while select.select([keeper], [], [], WAIT_S)[0]:
                keeper.read_messages()
        machine.keepers.lose(keeper)
        machine.heard.clear()
        assert machine.keeper.runs == {"r"}
        assert machine.parent == pid
        machine.keeper_is_killed()
        (machine.directory / "gate").touch()
        assert machine.wait_for("ended", "r")["status"] == 7

    def test_its_time_limit_and_its_end_by_somebody_outlive_it(self, machine):
        machine.shell("r1", "trap '' TERM; echo; while :; do sleep 0.05; done", time_limit_s=2, grace_s=0.5)
        machine.shell("r2", "trap 'sleep 1; exit 4' TERM; echo; while :; do sleep 0.05; done")
        for run_id in ("r1", "r2"):
            machine.wait_for_output(run_id)
        machine.keeper.stop("r2", protocol.CANCELLED, WAIT_S)
        time.sleep(0.3)
        machine.keeper_is_killed()
        ended = machine.wait_for("ended", "r2")
        assert (ended["status"], ended["why"]) == (4, protocol.CANCELLED)
        ended = machine.wait_for("ended", "r1")
        assert (ended["status"], ended["why"], ended["limit_s"]) == (-signal.SIGKILL, protocol.TIME_LIMIT, 2)

    def test_what_a_program_of_a_killed_keeper_leaves_behind_is_ended(self, machine):
        machine.shell("r", "setsid sleep 60 & echo $!; " + self.GATED, working_directory=machine.directory)
        (left,) = machine.wait_for_output("r")
        machine.keeper_is_killed()
        assert machine.keeper.runs == {"r"}
        (machine.directory / "gate").touch()
        assert machine.wait_for("ended", "r")["status"] == 7
        until(lambda: is_gone(left))

    def test_killed_with_its_parent_its_programs_run_on_and_their_claims_say_which_they_are(self, machine):
        machine.shell("r", "exec sleep 60")
        started = machine.wait_for("started", "r")
        until(lambda: run_directory.read(machine.run("r")).get("pid"))
        machine.keeper_is_killed(with_its_parent=True)
        claim = run_directory.read(machine.run("r"))
        pid, pidfd = run_directory.open_program(claim, "r")
        assert pid == started["pid"]
        os.kill(pid, signal.SIGKILL)
        assert select.select([pidfd], [], [], WAIT_S)[0]
        os.close(pidfd)
        assert run_directory.open_program(claim, "r") is None
        assert run_directory.read_exit(machine.run("r")) is None
        assert not run_directory.withdraw(machine.run("r")), "it ran"

    def test_killed_before_it_noted_the_process_the_program_is_found_by_its_environment(self, machine):
        run_id = f"{os.getpid():x}.{time.time_ns():x}"
        machine.shell(run_id, "exec sleep 60")
        pid = machine.wait_for("started", run_id)["pid"]
        machine.keeper_is_killed(with_its_parent=True)
        found, pidfd = run_directory.open_program({"keeper": NAME}, run_id)
        os.close(pidfd)
        assert found == pid
        os.kill(pid, signal.SIGKILL)

    def test_a_claim_whose_program_never_came_to_be_is_taken_back_and_claimed_anew_once(self, machine):
        run_directory.make(machine.run("r"), NAME, marks=True)
        assert run_directory.withdraw(machine.run("r"))
        assert not run_directory.withdraw(machine.run("r"))
        machine.shell("r", "echo once")
        machine.wait_for("ended", "r")
        assert not run_directory.withdraw(machine.run("r"))
        assert machine.output("r") == "once\n"

    def test_what_a_killed_one_was_still_to_claim_is_claimed_anew(self, tmp_path):
        directory = tmp_path / "runs" / "r"
        killed = (
            "import os, sys; from pathlib import Path; from trigmon.keeper import run_directory as r;"
            "r._add = lambda *_: os._exit(9); r.make(Path(sys.argv[1]), 'K')"
        )
        assert subprocess.run([sys.executable, "-c", killed, directory]).returncode == 9
        assert run_directory.read(directory) is None
        run_directory.make(directory, NAME)
        assert run_directory.read(directory)["keeper"] == NAME
        with pytest.raises(FileExistsError, match=str(directory)):
            run_directory.make(directory, NAME)

    def test_a_claim_of_which_nobody_can_tell_whether_its_program_ran_stays(self, tmp_path):
        run_directory.make(tmp_path / "earlier", NAME)
        run_directory.make(tmp_path / "rebooted", NAME, marks=True)
        claim = (tmp_path / "rebooted" / "claim").read_text()
        (tmp_path / "rebooted" / "claim").write_text(claim.replace(run_directory.boot_id(), "another"))
        assert not run_directory.withdraw(tmp_path / "earlier")
        assert not run_directory.withdraw(tmp_path / "rebooted")

    def test_the_moment_of_its_start_is_claimed_as_the_kernel_says_it(self, machine):
        for number in range(20):
            machine.shell(f"r{number}", "sleep 60")
            machine.wait_for("started", f"r{number}")
        for number in range(20):
            directory = machine.run(f"r{number}")
            until(lambda directory=directory: "pid" in run_directory.read(directory))
            claim = run_directory.read(directory)
            assert run_directory.is_same(claim, claim["pid"])

    def test_a_start_across_two_ticks_is_not_taken_from_the_clock(self, tmp_path, monkeypatch):
        directory = tmp_path / "runs" / "r"
        run_directory.make(directory, NAME)
        limits = {"time_limit_s": 0, "grace_s": 1}
        argv = {"argv": ["/bin/true"], "environment": {}, "working_directory": "/"}
        run = ProgramProcess({"run": "r", "directory": str(directory), **limits, **argv})
        moments = iter((5, 6))
        monkeypatch.setattr(run_directory, "ticks_now", lambda: next(moments))
        with Path(os.devnull).open() as null:
            run.start(null.fileno())
        os.waitpid(run.pid, 0)
        assert run.ticks == 0

    def test_a_process_of_the_same_number_is_not_taken_for_it(self):
        claim = {"boot": run_directory.boot_id(), "pid": os.getpid(), "ticks": run_directory.start_ticks(os.getpid())}
        _, pidfd = run_directory.open_program(claim, "r")
        os.close(pidfd)
        assert run_directory.open_program(claim | {"ticks": claim["ticks"] - 1}, "r") is None
        assert run_directory.open_program(claim | {"boot": "another"}, "r") is None

    def test_sent_sigterm_it_ends_its_programs_writes_their_ends_and_ends(self, machine):
        machine.shell("r", "trap 'exit 9' TERM; echo; while :; do sleep 0.02; done")
        machine.wait_for_output("r")
        keeper, pid = machine.keeper, machine.pid
        os.kill(pid, signal.SIGTERM)
        assert machine.wait_for("ended", "r")["why"] == protocol.KEEPER_ENDED
        assert run_directory.read_exit(machine.run("r"))["status"] == 9
        with pytest.raises(KeeperGone):
            while select.select([keeper], [], [], WAIT_S)[0]:
                keeper.read_messages()
        machine.keepers.lose(keeper)
        until(lambda: is_gone(pid))

    def test_the_next_one_is_started_in_its_place(self, machine):
        first = machine.pid
        machine.keeper_is_killed(with_its_parent=True)
        time.sleep(1.0)
        machine.shell("r", "exit 8")
        assert machine.wait_for("ended", "r")["status"] == 8
        assert machine.pid != first


def is_ended(pid):
    """Whether a process is a zombie, or gone."""
    return not run_directory.start_ticks(pid)


def test_it_is_small_and_started_quickly():
    """What it imports is paid while the first launch of a monitor waits."""
    code = "import sys, trigmon.keeper.main; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"msgspec", "pydantic", "structlog", "asyncio", "trigmon.mq", "dataclasses"} & set(done)

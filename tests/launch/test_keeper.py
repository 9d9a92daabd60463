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

from tests.launch.houses import NAME, WAIT_S, House, is_gone
from tests.waiting import until
from trigmon.keeper import protocol, run_directory
from trigmon.launch.keeper_client import KeeperGone, Keepers


@pytest.fixture
def deaf():
    """This process ignores what a shell has its background jobs ignore."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGQUIT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


class TestStarting:
    def test_a_program_gets_its_arguments_directory_environment_and_two_files_for_its_output(self, house, tmp_path):
        text = 'echo "$#|$1|$OWN|$(pwd)"; echo oh >&2; exit 3'
        house.start("r", "/bin/sh", "-c", text, "sh", "a 'b' $HOME", OWN="é", working_directory=tmp_path)
        ended = house.wait_for("ended", "r")
        assert ended["status"] == 3
        assert house.output("r") == f"1|a 'b' $HOME|é|{tmp_path}\n"
        assert house.output("r", "stderr") == "oh\n"

    def test_it_is_claimed_before_and_its_process_and_its_end_are_told_and_written(self, house):
        house.shell("r", "exit 4")
        started = house.wait_for("started", "r")
        claim = until(lambda: found if (found := run_directory.read(house.run("r"))).get("pid") else None)
        assert (claim["keeper"], claim["pid"], claim["start_ms"]) == (NAME, started["pid"], started["start_ms"])
        ended = house.wait_for("ended", "r")
        assert run_directory.read_exit(house.run("r")) == {key: value for key, value in ended.items() if key != "say"}
        assert ended["start_ms"] <= ended["end_ms"]

    def test_a_run_that_has_been_claimed_is_not_started(self, house):
        house.run("r").mkdir(parents=True)
        house.shell("r", "true")
        house.wait_for("taken", "r")
        assert list(house.run("r").iterdir()) == []

    def test_a_run_is_started_once_however_often_it_is_asked_for(self, house):
        for _ in range(3):
            house.shell("r", "echo once")
        house.wait_for("taken", "r")
        house.wait_for("ended", "r")
        assert house.output("r") == "once\n"

    def test_a_program_leads_its_own_session_reads_nothing_and_is_deaf_to_no_signal(self, house, deaf):
        house.shell("r", "cat; awk '{print $6}' /proc/$$/stat; grep -E 'Sig(Ign|Blk)' /proc/$$/status | cut -f2")
        started = house.wait_for("started", "r")
        assert house.wait_for("ended", "r")["status"] == 0
        session, *masks = house.output("r").split()
        assert session == str(started["pid"])
        plain = (1 << 31) - 1  # behind them are the C library's own, which its posix_spawn leaves ignored
        assert [int(mask, 16) & plain for mask in masks] == [0, 0]

    @pytest.mark.parametrize(
        ("program", "number"), [("missing", errno.ENOENT), ("text", errno.ENOEXEC), ("plain", errno.EACCES)]
    )
    def test_what_the_kernel_will_not_execute_is_told_with_its_reason_and_written(self, house, program, number):
        (house.directory / "text").write_text("echo\n")
        (house.directory / "text").chmod(0o755)
        (house.directory / "plain").write_text("#!/bin/sh\n")
        house.start("r", house.directory / program)
        assert house.wait_for("failed", "r")["errno"] == number
        assert run_directory.read_exit(house.run("r"))["errno"] == number

    def test_a_working_directory_that_is_missing_is_told(self, house):
        house.start("r", "/bin/true", working_directory=house.directory / "gone")
        assert house.wait_for("failed", "r")["errno"] == errno.ENOENT

    def test_files_that_cannot_be_made_are_told_and_are_no_fault_of_the_program(self, house):
        (house.directory / "runs").write_text("in the way")
        house.start("r", "/bin/true")
        failed = house.wait_for("failed", "r")
        assert failed["errno"] == 0
        assert "runs" in failed["error"]
        (house.directory / "runs").unlink()

    def test_an_order_that_makes_no_sense_hinders_no_other(self, house):
        house.start("bad", "/bin/echo", "nul\0")
        house.shell("r", "true")
        assert "null byte" in house.wait_for("failed", "bad")["error"]
        assert house.wait_for("ended", "r")["status"] == 0


class TestEnding:
    def test_exit_statuses_and_signals_are_told_as_they_are(self, house):
        house.shell("r1", "exit 255")
        house.shell("r2", "kill -9 $$")
        assert house.wait_for("ended", "r1")["status"] == 255
        assert house.wait_for("ended", "r2")["status"] == -signal.SIGKILL

    def test_a_thousand_programs_leave_neither_zombie_nor_descriptor(self, house):
        house.shell("first", "exit 0")
        house.wait_for("ended", "first")
        before = house.descriptors()
        for number in range(1000):
            house.start(f"r{number}", "/bin/sh", "-c", f"exit {number % 256}")
        statuses = [house.wait_for("ended", f"r{number}")["status"] for number in range(1000)]
        assert statuses == [number % 256 for number in range(1000)]
        assert house.children() == set()
        assert house.descriptors() == before

    def test_a_program_that_takes_too_long_is_ended_with_its_whole_group(self, house):
        house.shell("r", "sleep 60 & echo $!; wait", time_limit_s=0.3)
        (grandchild,) = house.wait_for_output("r")
        ended = house.wait_for("ended", "r")
        assert (ended["status"], ended["why"], ended["limit_s"]) == (-signal.SIGTERM, protocol.TIME_LIMIT, 0.3)
        until(lambda: is_gone(grandchild))

    def test_a_program_that_does_not_listen_is_killed_after_the_grace(self, house):
        began = time.monotonic()
        house.shell("r", "trap '' TERM; echo deaf; while :; do sleep 0.05; done", time_limit_s=0.3, grace_s=0.5)
        ended = house.wait_for("ended", "r")
        assert (ended["status"], ended["why"]) == (-signal.SIGKILL, protocol.TIME_LIMIT)
        assert time.monotonic() - began >= 0.8

    def test_a_program_that_cleans_up_in_its_grace_ends_with_its_own_status(self, house):
        house.shell("r", "trap 'echo clean; exit 7' TERM; echo; while :; do sleep 0.02; done")
        house.wait_for_output("r")
        house.keeper.stop("r", protocol.STOPPED, WAIT_S)
        ended = house.wait_for("ended", "r")
        assert (ended["status"], ended["why"]) == (7, protocol.STOPPED)
        assert house.output("r").endswith("clean\n")

    def test_a_stopped_program_is_ended_too(self, house):
        house.shell("r", "kill -STOP $$")
        pid = house.wait_for("started", "r")["pid"]
        until(lambda: Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T")
        house.keeper.stop("r", protocol.STOPPED, WAIT_S)
        assert house.wait_for("ended", "r")["status"] == -signal.SIGTERM


class TestWhatProgramsLeaveBehind:
    LEAVES = "sleep 60 & echo $!; setsid sleep 60 & echo $!; (setsid sh -c 'echo $$; sleep 60; :' &); sleep 0.1"

    def test_it_ends_when_the_program_has_wherever_it_hid(self, house):
        house.shell("r", f"{self.LEAVES}; exit 5")
        assert house.wait_for("ended", "r")["status"] == 5
        left = house.wait_for_output("r", 3)
        until(lambda: all(is_gone(pid) for pid in left))
        until(lambda: house.children() == set())

    def test_it_is_left_alone_while_the_program_runs(self, house):
        house.shell("other", "exit 0")
        text = f"{self.LEAVES}; touch here; while [ ! -e gate ]; do sleep 0.02; done"
        house.shell("r2", text, working_directory=house.directory)
        left = house.wait_for_output("r2", 3)
        until(lambda: (house.directory / "here").exists())
        house.shell("third", "exit 0")
        house.wait_for("ended", "third")
        time.sleep(1.2)
        assert not any(is_gone(pid) for pid in left)
        (house.directory / "gate").touch()
        house.wait_for("ended", "r2")
        until(lambda: all(is_gone(pid) for pid in left))

    def test_what_names_no_run_ends_with_the_last_program(self, house):
        hides = "(env -i setsid sh -c 'echo $$; exec sleep 60' &); sleep 0.1"
        house.shell("r", f"{hides}; true")
        house.shell("r2", "while [ ! -e gate ]; do sleep 0.02; done", working_directory=house.directory)
        (left,) = house.wait_for_output("r")
        house.wait_for("ended", "r")
        time.sleep(0.2)
        assert not is_gone(left)
        (house.directory / "gate").touch()
        house.wait_for("ended", "r2")
        until(lambda: is_gone(left))

    def test_what_does_not_listen_is_killed_after_the_grace_of_its_run(self, house):
        house.shell("r", "(trap '' TERM; echo deaf; while :; do sleep 0.05; done) & echo $!; sleep 0.1", grace_s=0.5)
        house.wait_for("ended", "r")
        left = next(word for word in house.wait_for_output("r", 2) if word.isdecimal())
        assert not is_gone(left)
        until(lambda: is_gone(left))


class TestMonitorsComeAndGo:
    def test_programs_run_on_and_the_next_monitor_is_told_of_them_and_of_their_ends(self, house):
        house.shell("r", "while [ ! -e gate ]; do sleep 0.02; done; exit 6", working_directory=house.directory)
        pid = house.pid
        house.wait_for("started", "r")
        house.monitor_is_killed()
        assert house.keeper.runs == {"r"}
        assert house.pid == pid
        (house.directory / "gate").touch()
        assert house.wait_for("ended", "r")["status"] == 6
        assert house.keeper.runs == set()

    def test_what_ended_while_no_monitor_ran_is_written(self, house):
        house.shell("r", "sleep 0.2; exit 6")
        house.wait_for("started", "r")
        house.monitor_is_killed()
        assert until(lambda: run_directory.read_exit(house.run("r")))["status"] == 6

    def test_what_a_killed_monitor_had_asked_for_is_done_before_the_next_is_greeted(self, house):
        house.shell("first", "exit 0")
        pid = house.pid
        time.sleep(0.5)  # what the keeper tells of its end is left unread, which resets the connection
        os.kill(pid, signal.SIGSTOP)
        house.shell("r", "sleep 60")
        house.keeper._link.close()
        house.heard.clear()
        house.keepers = Keepers(house.monitors, NAME)
        subprocess.Popen(["/bin/sh", "-c", f"sleep 0.3; kill -CONT {pid}"]).wait()
        assert "r" in house.keeper.runs

    def test_a_keeper_with_nothing_to_keep_ends_with_its_monitor(self, house):
        house.shell("r", "true")
        house.wait_for("ended", "r")
        pid, parent = house.pid, house.parent
        house.keepers.close()
        assert os.waitpid(parent, 0) == (parent, 0)
        assert is_gone(pid)

    def test_one_that_keeps_something_stays_until_that_has_ended_and_then_does_not_stay_long(self, house):
        house.shell("r", "while [ ! -e gate ]; do sleep 0.02; done", working_directory=house.directory)
        house.wait_for("started", "r")
        pid, parent = house.pid, house.parent
        house.keepers.close()
        time.sleep(0.3)
        assert not is_gone(pid)
        (house.directory / "gate").touch()
        began = time.monotonic()
        assert os.waitpid(parent, 0) == (parent, 0)
        assert time.monotonic() - began < 7
        assert run_directory.read_exit(house.run("r"))["status"] == 0

    def test_a_path_of_any_length_will_do(self, tmp_path):
        long = tmp_path / ("d" * 120)
        long.mkdir()
        house = House(long)
        house.shell("r", "true")
        assert house.wait_for("ended", "r")["status"] == 0
        house.end()

    def test_its_door_is_open_to_its_owner_alone(self, house):
        assert house.pid
        assert (house.monitors / NAME).stat().st_mode & 0o777 == 0o600


class TestTheKeeperDies:
    GATED = "while [ ! -e gate ]; do sleep 0.02; done; exit 7"

    def test_killed_alone_its_programs_are_the_next_ones_and_every_end_is_known(self, house):
        for run_id in ("r1", "r2"):
            house.shell(run_id, self.GATED, working_directory=house.directory)
        started = [house.wait_for("started", run_id) for run_id in ("r1", "r2")]
        first = house.pid
        house.keeper_is_killed()
        assert house.keeper.runs == {"r1", "r2"}
        assert house.pid != first
        (house.directory / "gate").touch()
        ended = [house.wait_for("ended", run_id) for run_id in ("r1", "r2")]
        assert [(said["status"], said["pid"], said["start_ms"]) for said in ended] == [
            (7, said["pid"], said["start_ms"]) for said in started
        ]
        assert run_directory.read_exit(house.run("r1"))["status"] == 7
        until(lambda: all(is_gone(said["pid"]) for said in started))

    def test_what_ends_while_it_is_dying_is_known_however_often_it_dies(self, house):
        house.shell("r0", "true")
        for number in range(1, 9):
            pid = house.pid
            house.shell(f"r{number}", f"exit {number}")
            program = house.wait_for("started", f"r{number}")["pid"]
            os.kill(pid, signal.SIGSTOP)
            until(lambda program=program: is_ended(program))
            house.keeper_is_killed()
            assert until(lambda number=number: run_directory.read_exit(house.run(f"r{number}")))["status"] == number

    def test_a_keeper_whose_parent_was_killed_loses_nothing_when_it_is_killed_later(self, house):
        house.shell("r", self.GATED, working_directory=house.directory)
        house.wait_for("started", "r")
        pid, parent, keeper = house.pid, house.parent, house.keeper
        os.kill(parent, signal.SIGKILL)
        with pytest.raises(KeeperGone):  # it is the parent now
            while select.select([keeper], [], [], WAIT_S)[0]:
                keeper.hear()
        house.keepers.lose(keeper)
        house.heard.clear()
        assert house.keeper.runs == {"r"}
        assert house.parent == pid
        house.keeper_is_killed()
        (house.directory / "gate").touch()
        assert house.wait_for("ended", "r")["status"] == 7

    def test_its_time_limit_and_its_end_by_somebody_outlive_it(self, house):
        house.shell("r1", "trap '' TERM; echo; while :; do sleep 0.05; done", time_limit_s=2, grace_s=0.5)
        house.shell("r2", "trap 'sleep 1; exit 4' TERM; echo; while :; do sleep 0.05; done")
        for run_id in ("r1", "r2"):
            house.wait_for_output(run_id)
        house.keeper.stop("r2", protocol.CANCELLED, WAIT_S)
        time.sleep(0.3)
        house.keeper_is_killed()
        ended = house.wait_for("ended", "r2")
        assert (ended["status"], ended["why"]) == (4, protocol.CANCELLED)
        ended = house.wait_for("ended", "r1")
        assert (ended["status"], ended["why"], ended["limit_s"]) == (-signal.SIGKILL, protocol.TIME_LIMIT, 2)

    def test_what_a_program_of_a_killed_keeper_leaves_behind_is_ended(self, house):
        house.shell("r", "setsid sleep 60 & echo $!; " + self.GATED, working_directory=house.directory)
        (left,) = house.wait_for_output("r")
        house.keeper_is_killed()
        assert house.keeper.runs == {"r"}
        (house.directory / "gate").touch()
        assert house.wait_for("ended", "r")["status"] == 7
        until(lambda: is_gone(left))

    def test_killed_with_its_parent_its_programs_run_on_and_their_claims_say_which_they_are(self, house):
        house.shell("r", "exec sleep 60")
        started = house.wait_for("started", "r")
        until(lambda: run_directory.read(house.run("r")).get("pid"))
        house.keeper_is_killed(with_its_parent=True)
        claim = run_directory.read(house.run("r"))
        pid, pidfd = run_directory.open_program(claim, "r")
        assert pid == started["pid"]
        os.kill(pid, signal.SIGKILL)
        assert select.select([pidfd], [], [], WAIT_S)[0]
        os.close(pidfd)
        assert run_directory.open_program(claim, "r") is None
        assert run_directory.read_exit(house.run("r")) is None
        assert not run_directory.withdraw(house.run("r")), "it ran"

    def test_killed_before_it_noted_the_process_the_program_is_found_by_its_environment(self, house):
        run_id = f"{os.getpid():x}.{time.time_ns():x}"
        house.shell(run_id, "exec sleep 60")
        pid = house.wait_for("started", run_id)["pid"]
        house.keeper_is_killed(with_its_parent=True)
        found, pidfd = run_directory.open_program({"keeper": NAME}, run_id)
        os.close(pidfd)
        assert found == pid
        os.kill(pid, signal.SIGKILL)

    def test_a_claim_whose_program_never_came_to_be_is_taken_back_and_claimed_anew_once(self, house):
        run_directory.make(house.run("r"), NAME, marks=True)
        assert run_directory.withdraw(house.run("r"))
        assert not run_directory.withdraw(house.run("r"))
        house.shell("r", "echo once")
        house.wait_for("ended", "r")
        assert not run_directory.withdraw(house.run("r"))
        assert house.output("r") == "once\n"

    def test_a_claim_of_which_nobody_can_tell_whether_its_program_ran_stays(self, tmp_path):
        run_directory.make(tmp_path / "earlier", NAME)
        run_directory.make(tmp_path / "rebooted", NAME, marks=True)
        claim = (tmp_path / "rebooted" / "claim").read_text()
        (tmp_path / "rebooted" / "claim").write_text(claim.replace(run_directory.boot_id(), "another"))
        assert not run_directory.withdraw(tmp_path / "earlier")
        assert not run_directory.withdraw(tmp_path / "rebooted")

    def test_a_process_of_the_same_number_is_not_taken_for_it(self):
        claim = {"boot": run_directory.boot_id(), "pid": os.getpid(), "ticks": run_directory.start_ticks(os.getpid())}
        _, pidfd = run_directory.open_program(claim, "r")
        os.close(pidfd)
        assert run_directory.open_program(claim | {"ticks": claim["ticks"] - 1}, "r") is None
        assert run_directory.open_program(claim | {"boot": "another"}, "r") is None

    def test_sent_sigterm_it_ends_its_programs_writes_their_ends_and_ends(self, house):
        house.shell("r", "trap 'exit 9' TERM; echo; while :; do sleep 0.02; done")
        house.wait_for_output("r")
        keeper, pid = house.keeper, house.pid
        os.kill(pid, signal.SIGTERM)
        assert house.wait_for("ended", "r")["why"] == protocol.KEEPER_ENDED
        assert run_directory.read_exit(house.run("r"))["status"] == 9
        with pytest.raises(KeeperGone):
            while select.select([keeper], [], [], WAIT_S)[0]:
                keeper.hear()
        house.keepers.lose(keeper)
        until(lambda: is_gone(pid))

    def test_the_next_one_is_started_in_its_place(self, house):
        first = house.pid
        house.keeper_is_killed(with_its_parent=True)
        time.sleep(1.0)
        house.shell("r", "exit 8")
        assert house.wait_for("ended", "r")["status"] == 8
        assert house.pid != first


def is_ended(pid):
    """Whether a process is a zombie, or gone."""
    return not run_directory.start_ticks(pid)


def test_it_is_small_and_started_quickly():
    """What it imports is paid while the first launch of a monitor waits."""
    code = "import sys, trigmon.keeper.main; print(*sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"msgspec", "pydantic", "structlog", "asyncio", "trigmon.mq", "dataclasses"} & set(said)

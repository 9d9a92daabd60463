"""A real keeper that is killed, alone or with its parent, and what the next one knows of the programs it left."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.launch import program_in_execve
from tests.launch.keeper_machine import NAME, WAIT_S, is_gone
from tests.waiting import until
from trigmon.keeper import protocol, run_directory
from trigmon.launch.keeper_client import KeeperGone

ROOT = Path(__file__).parents[2]
GATED = "while [ ! -e gate ]; do sleep 0.02; done; exit 7"


def test_killed_alone_its_programs_are_the_next_ones_and_every_end_is_known(machine):
    for run_id in ("r1", "r2"):
        machine.shell(run_id, GATED, working_directory=machine.directory)
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


@pytest.mark.parametrize(
    ("ended", "running", "depth"), [(200, 2, 0), (0, 12, 15)], ids=["hundreds that ended", "long paths"]
)
def test_the_next_one_knows_every_program_that_runs_whatever_was_started(machine, tmp_path, ended, running, depth):
    """What is sent into a socket that is full, since the parent was not woken in time, is lost."""
    runs = tmp_path.joinpath(*["ü" * 100] * depth, "runs")
    runs.mkdir(parents=True)
    machine.run = runs.joinpath
    first, *others = run_ids = [f"r{number}" for number in range(running)]
    machine.shell(first, GATED, working_directory=machine.directory)
    for number in range(ended):
        machine.shell(f"e{number}", "exit 0")
    for number in range(ended):
        machine.wait_for("ended", f"e{number}")
    for run_id in others:
        machine.shell(run_id, GATED, working_directory=machine.directory)
    for run_id in others:
        machine.wait_for("started", run_id)
    machine.keeper_is_killed()
    assert machine.keeper.runs == set(run_ids)
    (machine.directory / "gate").touch()
    assert {machine.wait_for("ended", run_id)["status"] for run_id in run_ids} == {7}


def test_what_ends_while_it_is_dying_is_known_however_often_it_dies(machine):
    machine.shell("r0", "true")
    for number in range(1, 9):
        pid = machine.pid
        machine.shell(f"r{number}", f"exit {number}")
        program = machine.wait_for("started", f"r{number}")["pid"]
        os.kill(pid, signal.SIGSTOP)
        until(lambda program=program: is_ended(program))
        machine.keeper_is_killed()
        assert until(lambda number=number: run_directory.read_exit(machine.run(f"r{number}")))["status"] == number


def test_what_each_of_many_programs_ended_with_while_it_was_dying_is_known(machine):
    ends = [signal.SIGKILL, signal.SIGTERM, signal.SIGUSR1] * 20
    for number in range(len(ends)):
        machine.start(f"r{number}", "/bin/sleep", "600")
    programs = [machine.wait_for("started", f"r{number}")["pid"] for number in range(len(ends))]
    os.kill(machine.pid, signal.SIGSTOP)
    for program, end in zip(programs, ends, strict=True):
        os.kill(program, end)
    until(lambda: all(is_ended(program) for program in programs))
    machine.keeper_is_killed()
    for number, end in enumerate(ends):
        ended = until(lambda number=number: run_directory.read_exit(machine.run(f"r{number}")))
        assert ended["status"] == -end


def test_a_program_in_the_middle_of_its_execve_is_waited_for(tmp_path):
    argv = [sys.executable, "-m", "tests.launch.program_in_execve", tmp_path]
    played = subprocess.run(argv, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    if played == program_in_execve.KEPT:
        pytest.skip("this kernel does not let a process drop its command line")
    assert played == "['r']"


def test_a_keeper_whose_parent_was_killed_loses_nothing_when_it_is_killed_later(machine):
    machine.shell("r", GATED, working_directory=machine.directory)
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


def test_its_time_limit_and_its_end_by_somebody_outlive_it(machine):
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


def test_what_a_program_of_a_killed_keeper_leaves_behind_is_ended(machine):
    machine.shell("r", "setsid sleep 60 & echo $!; " + GATED, working_directory=machine.directory)
    (left,) = machine.wait_for_output("r")
    machine.keeper_is_killed()
    assert machine.keeper.runs == {"r"}
    (machine.directory / "gate").touch()
    assert machine.wait_for("ended", "r")["status"] == 7
    until(lambda: is_gone(left))


def test_killed_with_its_parent_its_programs_run_on_and_their_claims_say_which_they_are(machine):
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


def test_killed_before_it_noted_the_process_the_program_is_found_by_its_environment(machine):
    run_id = f"{os.getpid():x}.{time.time_ns():x}"
    machine.shell(run_id, "exec sleep 60")
    pid = machine.wait_for("started", run_id)["pid"]
    machine.keeper_is_killed(with_its_parent=True)
    found, pidfd = run_directory.open_program({"keeper": NAME}, run_id)
    os.close(pidfd)
    assert found == pid
    os.kill(pid, signal.SIGKILL)


def test_sent_sigterm_it_ends_its_programs_writes_their_ends_and_ends(machine):
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


def test_the_next_one_is_started_in_its_place(machine):
    first = machine.pid
    machine.keeper_is_killed(with_its_parent=True)
    time.sleep(1.0)
    machine.shell("r", "exit 8")
    assert machine.wait_for("ended", "r")["status"] == 8
    assert machine.pid != first


def is_ended(pid):
    """Whether a process is a zombie, or gone."""
    return not run_directory.start_ticks(pid)

"""The claim of a run: who has it, when it is taken back, and which process it names."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.launch.keeper_machine import NAME
from tests.waiting import until
from trigmon.keeper import run_directory
from trigmon.keeper.process import ProgramProcess


def test_a_claim_whose_program_never_came_to_be_is_taken_back_and_claimed_anew_once(machine):
    run_directory.make(machine.run("r"), NAME, marks=True)
    assert run_directory.withdraw(machine.run("r"))
    assert not run_directory.withdraw(machine.run("r"))
    machine.shell("r", "echo once")
    machine.wait_for("ended", "r")
    assert not run_directory.withdraw(machine.run("r"))
    assert machine.output("r") == "once\n"


def test_what_a_killed_keeper_was_still_to_claim_is_claimed_anew(tmp_path):
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


def test_a_claim_of_which_nobody_can_tell_whether_its_program_ran_stays(tmp_path):
    run_directory.make(tmp_path / "earlier", NAME)
    run_directory.make(tmp_path / "rebooted", NAME, marks=True)
    claim = (tmp_path / "rebooted" / "claim").read_text()
    (tmp_path / "rebooted" / "claim").write_text(claim.replace(run_directory.boot_id(), "another"))
    assert not run_directory.withdraw(tmp_path / "earlier")
    assert not run_directory.withdraw(tmp_path / "rebooted")


def test_the_moment_of_a_programs_start_is_claimed_as_the_kernel_says_it(machine):
    for number in range(20):
        machine.shell(f"r{number}", "sleep 60")
        machine.wait_for("started", f"r{number}")
    for number in range(20):
        directory = machine.run(f"r{number}")
        until(lambda directory=directory: "pid" in run_directory.read(directory))
        claim = run_directory.read(directory)
        assert run_directory.is_same(claim, claim["pid"])


def test_a_start_across_two_ticks_is_not_taken_from_the_clock(tmp_path, monkeypatch):
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


def test_a_process_of_the_same_number_is_not_taken_for_the_claimed_one():
    claim = {"boot": run_directory.boot_id(), "pid": os.getpid(), "ticks": run_directory.start_ticks(os.getpid())}
    _, pidfd = run_directory.open_program(claim, "r")
    os.close(pidfd)
    assert run_directory.open_program(claim | {"ticks": claim["ticks"] - 1}, "r") is None
    assert run_directory.open_program(claim | {"boot": "another"}, "r") is None

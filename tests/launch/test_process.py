from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from trigmon.launch.port import LaunchError, LaunchPlan
from trigmon.launch.process import ProcessLauncher, find_program, start, tail


def script(directory, text, name="job"):
    file = directory / name
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return file


def ran(plan, directory):
    child = start(plan, directory / "run")
    code = child.wait(20)
    return code, (directory / "run" / "stdout").read_text(), (directory / "run" / "stderr").read_text()


def test_a_program_beside_its_definition_is_started_with_its_arguments_directory_and_environment(order, tmp_path):
    script(tmp_path, 'echo "$#|$1|$TRIGMON_QNAME|$TRIGMON_RUN|$(pwd)"; echo oh >&2; exit 3')
    plan = ProcessLauncher().plan(order("job {trigdata}", trigger_data="a 'b' $HOME", working_directory=str(tmp_path)))
    said = f"1|a 'b' $HOME|ORDERS|0123456789abcdef|{tmp_path}\n"
    assert ran(plan, tmp_path) == (3, said, "oh\n")


def test_a_program_is_found_on_path(order):
    assert ProcessLauncher().plan(order("sh")).argv[0].endswith("/sh")


def test_without_a_definition_directory_only_path_is_searched_for_a_bare_name(tmp_path, monkeypatch):
    script(tmp_path, "true", "only-here")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LaunchError, match="no program only-here on PATH"):
        find_program("only-here", "")
    assert find_program("./only-here", "") == str(tmp_path / "only-here")


def test_a_missing_program_is_refused_before_anything_is_started(order):
    with pytest.raises(LaunchError, match="no program /no/such/program"):
        ProcessLauncher().plan(order("/no/such/program"))


def test_a_file_that_is_not_executable_is_refused_with_the_remedy(order, tmp_path):
    (tmp_path / "job").write_text("echo\n")
    with pytest.raises(LaunchError, match=r"not executable \(chmod"):
        ProcessLauncher().plan(order("job", working_directory=str(tmp_path)))


def test_what_is_wrong_with_a_program_is_said(order, tmp_path):
    plan = ProcessLauncher().plan
    with pytest.raises(LaunchError, match=f"{tmp_path} is a directory, not a program"):
        plan(order(str(tmp_path)))
    (tmp_path / "job").write_text("#!/no/such/python -u\n")
    (tmp_path / "job").chmod(0o755)
    with pytest.raises(LaunchError, match=r"names the interpreter /no/such/python in its #! line: it is missing$"):
        plan(order("job", working_directory=str(tmp_path)))
    (tmp_path / "job").write_bytes(b"#!/bin/nosh\r\necho\r\n")
    with pytest.raises(LaunchError, match=r"it is missing \(the line ends in a carriage return\)"):
        plan(order("job", working_directory=str(tmp_path)))
    (tmp_path / "job").write_text("echo hello\n")
    with pytest.raises(LaunchError, match="it has no #! line"):
        start(plan(order("job", working_directory=str(tmp_path))), tmp_path / "run1")
    gone = LaunchPlan(argv=["/bin/true"], environment={}, working_directory=str(tmp_path / "gone"))
    with pytest.raises(LaunchError, match=f"the working directory {tmp_path}/gone is not there"):
        start(gone, tmp_path / "run2")


def test_a_program_in_another_directory_finds_the_home_and_the_settings_its_monitor_was_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRIGMON_HOME", "home")
    monkeypatch.setenv("TRIGMON_CONFIG", "etc/ours.yaml")
    monkeypatch.setenv("TRIGMON_RUNTIME", "")
    script(tmp_path, 'echo "$TRIGMON_HOME|$TRIGMON_CONFIG|$TRIGMON_RUNTIME"')
    plan = LaunchPlan(argv=[str(tmp_path / "job")], environment={}, working_directory="/")
    assert ran(plan, tmp_path)[1] == f"{tmp_path}/home|{tmp_path}/etc/ours.yaml|\n"


def test_a_program_leads_its_own_session_and_reads_nothing(tmp_path):
    script(tmp_path, "cat; ps -o sid= -p $$ 2>/dev/null || awk '{print $6}' /proc/$$/stat")
    child = start(LaunchPlan(argv=[str(tmp_path / "job")], environment={}), tmp_path / "run")
    assert child.wait(20) == 0
    assert int((tmp_path / "run" / "stdout").read_text()) == child.pid


def test_the_whole_group_ends_by_one_signal(tmp_path):
    script(tmp_path, "sleep 60 & echo $!; wait")
    child = start(LaunchPlan(argv=[str(tmp_path / "job")], environment={}), tmp_path / "run")
    while not (grandchild := (tmp_path / "run" / "stdout").read_text()):
        assert child.poll() is None
    os.killpg(child.pid, signal.SIGKILL)
    assert child.wait(20) == -signal.SIGKILL
    state = Path(f"/proc/{int(grandchild)}/stat")
    while state.exists() and " Z " not in state.read_text():
        time.sleep(0.01)


def test_a_service_managers_wires_are_not_inherited(tmp_path, monkeypatch):
    monkeypatch.setenv("NOTIFY_SOCKET", "/run/systemd/notify")
    monkeypatch.setenv("KEPT", "yes")
    script(tmp_path, 'echo "$NOTIFY_SOCKET|$KEPT"')
    assert ran(LaunchPlan(argv=[str(tmp_path / "job")], environment={}), tmp_path)[1] == "|yes\n"


def test_a_run_directory_is_never_used_twice(tmp_path):
    plan = LaunchPlan(argv=["/bin/true"], environment={})
    start(plan, tmp_path / "run").wait(20)
    with pytest.raises(FileExistsError):
        start(plan, tmp_path / "run")


def test_a_program_that_cannot_be_executed_raises(tmp_path):
    (tmp_path / "job").write_bytes(b"\x7fELF not really")
    (tmp_path / "job").chmod(0o755)
    with pytest.raises(LaunchError, match=r"no #! line \(Exec format error\)"):
        start(LaunchPlan(argv=[str(tmp_path / "job")], environment={}), tmp_path / "run")


def test_the_tail_of_a_runs_output_begins_with_a_whole_line(tmp_path):
    (tmp_path / "stderr").write_text("first line\nsecond line\nthird\n")
    (tmp_path / "stdout").write_text("answer\n")
    assert tail(tmp_path, ("stderr",), 12) == "third\n"
    assert tail(tmp_path, ("stderr", "stdout"), 24) == "third\nanswer\n"
    assert tail(tmp_path, ("stderr",)) == "first line\nsecond line\nthird\n"
    assert tail(tmp_path / "missing", ("stderr",)) == ""

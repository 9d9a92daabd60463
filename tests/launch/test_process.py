from __future__ import annotations

import errno

import pytest

from trigmon.launch.launch_plan import LaunchError, LaunchPlan
from trigmon.launch.unix import ProcessLauncher, environment, find_program, tail, why_not


def script(directory, text, name="job"):
    file = directory / name
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return file


def test_a_program_is_found_on_path(order):
    assert ProcessLauncher().plan(order("cat")).argv[0].endswith("/cat")


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


def test_what_is_wrong_with_a_program_is_reported(order, tmp_path):
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


def test_a_program_in_another_directory_finds_the_home_and_the_settings_its_monitor_was_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRIGMON_HOME", "home")
    monkeypatch.setenv("TRIGMON_CONFIG", "etc/ours.yaml")
    monkeypatch.setenv("TRIGMON_RUNTIME", "")
    given = environment(LaunchPlan(argv=["job"], environment={}, working_directory="/"))
    assert given["TRIGMON_HOME"] == f"{tmp_path}/home"
    assert given["TRIGMON_CONFIG"] == f"{tmp_path}/etc/ours.yaml"
    assert given["TRIGMON_RUNTIME"] == ""


def test_what_the_kernels_refusal_means_is_reported(tmp_path):
    expected = f"the working directory {tmp_path}/gone is not there"
    assert why_not(errno.ENOENT, "/bin/true", str(tmp_path / "gone")) == expected
    assert "it has no #! line (Exec format error)" in why_not(errno.ENOEXEC, "/bin/job", str(tmp_path))
    assert why_not(errno.EACCES, "/bin/job", "") == "/bin/job cannot be executed: Permission denied"


def test_the_tail_of_a_runs_output_begins_with_a_whole_line(tmp_path):
    (tmp_path / "stderr").write_text("first line\nsecond line\nthird\n")
    (tmp_path / "stdout").write_text("answer\n")
    assert tail(tmp_path, ("stderr",), 12) == "third\n"
    assert tail(tmp_path, ("stderr", "stdout"), 24) == "third\nanswer\n"
    assert tail(tmp_path, ("stderr",)) == "first line\nsecond line\nthird\n"
    assert tail(tmp_path / "missing", ("stderr",)) == ""

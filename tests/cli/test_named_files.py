"""Files that somebody names are read, or refused at once with a sentence that a person can read."""

import os
import subprocess
import sys

import pytest

from tests.cli.conftest import run_cli
from tests.daemons import Daemon
from trigmon.launch.launch_plan import LaunchError
from trigmon.launch.users import listed

HUGE = "9" * 200_000
LONGEST = 4000
"""An error with all that it names is no longer than this."""


def trigmon(home, *arguments, **run):
    """The command line in a process of its own, which is ended when it waits."""
    argv = [sys.executable, "-m", "trigmon", *map(str, arguments)]
    env = Daemon(home).env
    return subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60, check=False, **run)


@pytest.fixture(params=["fifo", "device", "directory"])
def no_file(request, tmp_path):
    path = tmp_path / "named.yaml"
    if request.param == "fifo":
        os.mkfifo(path)
    elif request.param == "device":
        path.symlink_to("/dev/zero")
    else:
        path.mkdir()
        os.mkfifo(path / "inside.yaml")
        os.mkfifo(path / "trigmon.yaml")
    return path


@pytest.mark.parametrize("command", ["apply", "mqsc", "simulate", "lint"])
def test_what_is_no_regular_file_is_refused_by_its_name(no_file, tmp_path, command):
    ended = trigmon(tmp_path, command, no_file)
    assert ended.returncode in (1, 2), ended.stderr
    assert str(no_file) in ended.stderr
    assert "is not a regular file" in ended.stderr


def test_nor_is_it_a_settings_file(no_file, tmp_path):
    ended = trigmon(tmp_path, "--config", no_file, "config", "show")
    assert ended.returncode == 2
    assert str(no_file) in ended.stderr
    assert no_file.is_dir() or "is not a regular file" in ended.stderr


def test_nor_a_list_of_users(tmp_path):
    os.mkfifo(tmp_path / "users")
    with pytest.raises(LaunchError, match=f"{tmp_path}/users.* is not a regular file but a FIFO"):
        listed(tmp_path / "users")


def test_what_a_shell_has_opened_is_read(daemon):
    one = daemon()
    objects = "- qlocal: A\n"
    assert one.trigmon("apply", "-", input=objects).returncode == 0
    assert one.trigmon("apply", "/dev/stdin", input=objects).returncode == 0
    assert one.trigmon("lint", "/dev/stdin", input="DEFINE QLOCAL(A)\n").returncode == 0
    assert "Display Queue details" in one.trigmon("mqsc", input="DISPLAY QLOCAL(A)\n").stdout
    assert "Display Queue details" in one.trigmon("mqsc", "-", input="DISPLAY QLOCAL(A)\n").stdout
    script = f"{sys.executable} -m trigmon mqsc <(echo 'DISPLAY QLOCAL(A)')"
    ran = subprocess.run(["bash", "-c", script], env=one.env, capture_output=True, text=True, check=False, timeout=60)
    assert "Display Queue details" in ran.stdout, ran.stderr


@pytest.mark.parametrize("number", [HUGE, "0x" + "f" * 200_000, f"-{HUGE}", "9" * 4000])
def test_a_number_of_many_digits_is_refused_with_object_and_attribute(tmp_path, number):
    file = tmp_path / "queues.yaml"
    file.write_text(f"- qlocal: A\n  max_q_depth: {number}\n")
    ended = run_cli("lint", str(file))
    assert ended.exit_code == 1
    assert f"({file}:2)" in ended.output
    assert "QLOCAL A: max_q_depth must be 0 to 999999999, not " in ended.output
    assert len(ended.output) < LONGEST


def test_nor_is_such_a_number_one_of_a_process_or_of_mqsc(tmp_path):
    process, script = tmp_path / "P.yaml", tmp_path / "q.mqsc"
    process.write_text(f"appl_type: unix\nappl_id: /bin/true\nlaunch: {{retry: {HUGE}}}\n")
    script.write_text(f"DEFINE QLOCAL(A) MAXDEPTH({HUGE})\n")
    for file, word in (process, "retry"), (script, "MAXDEPTH"):
        ended = run_cli("lint", str(file))
        assert ended.exit_code == 1
        assert str(file) in ended.output
        assert word in ended.output
        assert len(ended.output) < LONGEST


@pytest.mark.parametrize("key", ["server.max_connections", "store.disk_reserve", "runs.keep_days"])
def test_nor_is_it_a_setting(tmp_path, key):
    file = tmp_path / "mine.yaml"
    section, _, name = key.partition(".")
    file.write_text(f"{section}: {{{name}: {HUGE}}}")
    ended = run_cli("--config", str(file), "config", "show")
    assert ended.exit_code == 2
    assert f"{file}:1: {key}: " in ended.stderr
    assert len(ended.stderr) < LONGEST


def test_nor_is_it_anything_in_a_scenario(tmp_path):
    file = tmp_path / "scenario.yaml"
    for step in (f"put: {{queue: A, priority: {HUGE}}}", f"wait: {HUGE}", f"{HUGE}: A"):
        file.write_text(f"scenario: x\nsteps:\n- {step}\n")
        ended = run_cli("simulate", str(file))
        assert ended.exit_code == 2
        assert str(file) in ended.stderr
        assert len(ended.stderr) < LONGEST


def test_a_name_of_megabytes_comes_back_short(daemon, tmp_path):
    one = daemon()
    name = "A" * 3_000_000
    yaml, script = tmp_path / "q.yaml", tmp_path / "q.mqsc"
    yaml.write_text(f"- qlocal: {name}\n- {name}: B\n- qlocal: C\n  {name[:1000]}: 1\n")
    script.write_text(f"DEFINE QLOCAL({name})\nALTER QLOCAL(A) DESCR('{name}')\n")
    for ended in (
        one.trigmon("apply", yaml),
        one.trigmon("lint", script),
        one.trigmon("simulate", yaml),
        one.trigmon("put", "--", "B" * 100_000, "x"),
        one.trigmon("--config", yaml, "config", "show"),
    ):
        assert ended.returncode in (1, 2, 3), ended.stderr[:200]
        assert "in all" in ended.stderr or len(ended.stderr) < 400
        assert len(ended.stderr) < LONGEST
    answers = [line for line in one.trigmon("mqsc", script).stdout.splitlines() if not line.startswith("     ")]
    assert max(map(len, answers)) < LONGEST

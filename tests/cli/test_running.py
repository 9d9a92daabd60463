from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.cli.conftest import Trigmon, objects, run_cli
from tests.postgres import shared

SCENARIO = """
scenario: a message is put
setup: DEFINE QLOCAL(Q)
steps:
- put: {queue: Q, data: m}
- check: {queue: Q, CURDEPTH: %d}
"""


@pytest.mark.parametrize(("depth", "code", "last"), [(1, 0, "1 passed, 0 failed"), (2, 1, "0 passed, 1 failed")])
def test_a_scenario_is_played_and_its_outcome_is_the_exit_code(tmp_path: Path, depth: int, code: int, last: str):
    file = tmp_path / "s.yaml"
    file.write_text(SCENARIO % depth)
    result = run_cli("simulate", str(file))
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (code, last)
    as_json = run_cli("simulate", str(file), "--output", "json", "--store", "sqlite")
    assert as_json.exit_code == code
    assert as_json.stdout.count("\n") == 1
    assert last in as_json.stderr


def test_it_is_played_on_the_postgresql_of_the_settings(tmp_path: Path):
    file = tmp_path / "s.yaml"
    file.write_text(SCENARIO % 1)
    result = run_cli("simulate", str(file), "--store", "postgres", env={"TRIGMON_STORE_POSTGRES": shared().dsn})
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (0, "1 passed, 0 failed")


def test_a_file_that_is_no_scenario_is_exit_2(tmp_path: Path):
    file = tmp_path / "s.yaml"
    file.write_text("scenaro: x\nsteps: []\n")
    result = run_cli("simulate", str(file))
    assert result.exit_code == 2
    assert f"{file}:1" in result.stderr


def test_a_queue_manager_runs_with_its_data_where_an_option_names_it(daemon, tmp_path: Path):
    one = daemon(start=False)
    one.start("--data", str(tmp_path / "store"))
    assert (tmp_path / "store").is_dir()
    assert one.trigmon("status").returncode == 0
    assert one.stop() == 0
    gone = one.trigmon("status")
    assert gone.returncode == 6
    assert "trigmon: MQRC_Q_MGR_NOT_AVAILABLE (2059)" in gone.stderr


def test_a_full_disk_is_reported_once_with_what_to_do(daemon):
    one = daemon(settings={"store.disk_reserve": 10**18})
    refused = one.trigmon("put", "SYSTEM.DEFAULT.LOCAL.QUEUE", "x")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "MQRC_STORAGE_MEDIUM_FULL (2192)" in refused.stderr
    assert refused.stderr.count("make room") == 1


def test_a_relative_config_reaches_a_program_that_runs_elsewhere(daemon, tmp_path: Path):
    (tmp_path / "c.yaml").write_text("log:\n  level: warning\n")
    one = daemon(start=False)
    one.with_monitor = True
    env = one.env | {"PYTHONPATH": str(Path(__file__).parents[2])}
    one.start("--config", "c.yaml", cwd=tmp_path, env=env)
    (tmp_path / "elsewhere").mkdir()
    output = tmp_path / "output"
    program = tmp_path / "elsewhere" / "tell.sh"
    program.write_text(f'#!/bin/sh\necho "$TRIGMON_CONFIG" > {output}.part && mv {output}.part {output}\n')
    program.chmod(0o755)
    initq = "SYSTEM.DEFAULT.INITIATION.QUEUE"
    words = [f"appl_id={program}", f"WORKDIR={program.parent}"]
    assert one.trigmon("process", "define", "TELL", *words).returncode == 0
    assert one.trigmon("queue", "define", "TELL.IN", "process_name=TELL").returncode == 0
    assert one.trigmon("process", "start", "TELL", "--queue", "TELL.IN", "--initq", initq).stdout
    deadline = time.monotonic() + 20
    while not output.exists():
        assert time.monotonic() < deadline, one.log.read_text()
        time.sleep(0.05)
    assert output.read_text() == f"{tmp_path}/c.yaml\n"


def test_wrong_settings_stop_everything_before_it_begins(tmp_path: Path):
    config = tmp_path / "c.yaml"
    config.write_text("sever: {}\n")
    for command in ("run", "monitor"):
        result = run_cli(command, "--config", str(config))
        assert result.exit_code == 2
        assert f"{config}:1: unknown key 'sever'; the nearest known one is 'server'" in result.stderr


def test_a_monitor_of_no_such_queue_ends_with_3(trigmon: Trigmon):
    result = trigmon("monitor", "--initq", "NO.SUCH.INITQ")
    assert result.exit_code == 3
    assert "NO.SUCH.INITQ" in result.stderr


def test_common_options_are_heard_wherever_they_stand(trigmon: Trigmon, shared_daemon):
    address = f"unix:{shared_daemon.socket}"
    for words in (["--qmgr", address, "queue", "list", "SYSTEM.D*"], ["queue", "list", "SYSTEM.D*", "--qmgr", address]):
        names = [row["name"] for row in objects(run_cli("--output", "json", *words))]
        assert "SYSTEM.DEAD.LETTER.QUEUE" in names
        assert all(name.startswith("SYSTEM.D") for name in names)
    assert run_cli("--qmgr", address, "status", "--qmgr", "NOBODY").exit_code == 6

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Trigmon, objects, run_cli
from tests.launch.conftest import make_order
from trigmon.cli.config import unknown_variables
from trigmon.launch.arguments import environment


def test_settings_are_shown_with_their_origin(trigmon: Trigmon, tmp_path: Path):
    config = tmp_path / "c.yaml"
    config.write_text("log:\n  level: debug\n")
    rows = {
        row["key"]: row
        for row in objects(trigmon("config", "show", "--origin", "--config", str(config), "--output", "json"))
    }
    assert rows["log.level"] == {"key": "log.level", "value": "debug", "origin": f"{config}:2"}
    assert rows["qmgr.name"]["origin"] == "environment TRIGMON_QMGR"
    config.write_text("log:\n  levle: debug\n")
    wrong = trigmon("config", "show", "--config", str(config))
    assert wrong.exit_code == 2
    assert f"{config}:2: unknown key 'levle'; the nearest known one is 'level'" in wrong.stderr


def test_a_relative_config_is_meant_from_here_and_its_paths_from_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "c.yaml").write_text("qmgr:\n  data: store\n")
    monkeypatch.chdir(tmp_path)
    for reported in (
        run_cli("config", "show", "--config", "conf/c.yaml", "--output", "json"),
        run_cli("config", "show", "--output", "json", env={"TRIGMON_CONFIG": "conf/c.yaml"}),
    ):
        rows = {row["key"]: row["value"] for row in objects(reported)}
        assert rows["qmgr.data"] == str(tmp_path / "conf" / "store")


@pytest.mark.parametrize("command", ["config show", "queue list", "status"])
def test_a_config_that_is_not_there_is_a_usage_error_of_every_command(command: str):
    result = run_cli(*command.split(), "--config", "none.yaml", "--qmgr", "QM1")
    assert result.exit_code == 2
    assert "'none.yaml' does not exist" in result.stderr


def test_a_variable_that_means_nothing_is_reported_beside_the_settings():
    result = run_cli("config", "show", env={"TRIGMON_PORT_1414_TCP": "x"})
    assert result.exit_code == 0
    assert result.stderr == "trigmon: TRIGMON_PORT_1414_TCP is set, and is no setting\n"


def test_the_variables_that_a_started_program_gets_mean_something():
    names = environment(make_order())
    assert len(names) > 5
    assert unknown_variables([*names, "TRIGMON_LOG_LEVEL", "TRIGMON_X", "PATH"]) == ["TRIGMON_X"]


def test_check_reports_every_mistake_of_a_settings_file_at_once(tmp_path):
    file = tmp_path / "bad.yaml"
    file.write_text("monitor:\n  instances: 0\n  grace_s: soon\nserver:\n  tcp_prt: 1414\n")
    checked = run_cli("config", "check", "--config", str(file))
    assert checked.exit_code == 2
    for place in (f"{file}:2: monitor.instances", f"{file}:3: monitor.grace_s", f"{file}:5: "):
        assert place in checked.stderr


def test_check_reads_the_definition_files_that_the_settings_name(tmp_path):
    file, objects = tmp_path / "good.yaml", tmp_path / "objects.yaml"
    file.write_text("qmgr:\n  definitions: [objects.yaml]\n")
    objects.write_text("- qlocal: A\n- qlocal: B\n")
    checked = run_cli("config", "check", "--config", str(file))
    assert (checked.exit_code, checked.stdout.endswith("settings hold, and 2 objects in 1 paths\n")) == (0, True)
    objects.write_text("- qlocal: A\n  maxdpth: 5\n- qlocal: B\n  get: perhaps\n")
    checked = run_cli("config", "check", "--config", str(file))
    assert checked.exit_code == 1
    assert f"{objects}:2" in checked.stderr
    assert f"{objects}:4" in checked.stderr

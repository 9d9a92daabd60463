from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Trigmon, objects, run_cli
from trigmon import places
from trigmon.mq.calls import Display


def test_a_queue_is_defined_shown_altered_listed_and_deleted(trigmon: Trigmon):
    defined = trigmon("queue", "define", "OB.A", "TRIGGER", "trigger_type=depth", "TRIGDPTH=5")
    assert (defined.exit_code, defined.stdout) == (0, "QLOCAL OB.A defined\n")
    assert trigmon("queue", "alter", "OB.A", "NOTRIGGER", "maxdepth=7").exit_code == 0
    (shown,) = objects(trigmon("queue", "show", "OB.A", "--output", "json"))
    assert shown["name"] == "OB.A"
    assert (shown["trigger_control"], shown["trigger_type"], shown["trigger_depth"]) == ("off", "depth", 5)
    assert shown["max_q_depth"] == 7
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", shown["created_time"])
    assert [row["name"] for row in objects(trigmon("--output", "json", "queue", "list", "OB.A*"))] == ["OB.A"]
    assert trigmon("queue", "delete", "OB.A").stdout == "QLOCAL OB.A deleted\n"
    assert trigmon("queue", "show", "OB.A").exit_code == 3


def test_a_table_has_no_borders_when_piped(trigmon: Trigmon):
    trigmon("queue", "define", "OB.TABLE")
    head, row = trigmon("queue", "list", "OB.TABLE").stdout.splitlines()
    assert head.split()[:3] == ["name", "object_type", "current_q_depth"]
    assert row.split()[:3] == ["OB.TABLE", "QLOCAL", "0"]


def test_an_alias_is_defined_and_altered_by_its_own_attributes(trigmon: Trigmon):
    trigmon("queue", "define", "OB.BASE")
    assert trigmon("queue", "define", "OB.ALIAS", "--alias-of", "OB.BASE").stdout == "QALIAS OB.ALIAS defined\n"
    assert trigmon("queue", "alter", "OB.ALIAS", "TARGET=OB.OTHER").exit_code == 0
    (shown,) = objects(trigmon("queue", "show", "OB.ALIAS", "--output", "json"))
    assert shown["base_q_name"] == "OB.OTHER"
    assert trigmon("queue", "alter", "OB.ALIAS", "TRIGGER").exit_code == 2


def test_system_queues_are_listed_when_asked_for(trigmon: Trigmon):
    names = [row["name"] for row in objects(trigmon("queue", "list", "--system", "--output", "json"))]
    assert "SYSTEM.DEAD.LETTER.QUEUE" in names
    assert "SYSTEM.DEAD.LETTER.QUEUE" not in trigmon("queue", "list").stdout
    assert "SYSTEM.DEAD.LETTER.QUEUE" in trigmon("queue", "list", "SYSTEM.DEAD*").stdout


def test_no_such_name_is_not_shown_as_an_empty_list(trigmon: Trigmon):
    assert trigmon("queue", "list", "NONE").exit_code == 3
    nothing = trigmon("queue", "list", "NONE*")
    assert (nothing.exit_code, nothing.stdout) == (0, "")
    assert "nothing is named NONE*" in nothing.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["trigger_typ=first"], "no attribute trigger_typ; did you mean 'trigger_type'?"),
        (["TRIGDPTH=0"], "trigger_depth must be 1 to 999999999"),
        (["TRIGTYPE=first", "trigger_type=every"], "trigger_type was already given"),
        (["TRIGGR"], "did you mean 'TRIGGER'?"),
    ],
)
def test_a_wrong_attribute_is_a_usage_error_before_anything_is_asked(words: list[str], said: str):
    result = run_cli("queue", "define", "Q", *words, "--qmgr", "NOBODY")
    assert result.exit_code == 2
    assert said in result.stderr


def test_define_again_is_refused_and_replaced_when_told(trigmon: Trigmon):
    trigmon("queue", "define", "OB.AGAIN", "MAXDEPTH=1")
    refused = trigmon("queue", "define", "OB.AGAIN")
    assert refused.exit_code == 5
    assert "MQRC_OBJECT_ALREADY_EXISTS (2100)" in refused.stderr
    assert trigmon("queue", "define", "OB.AGAIN", "--replace").exit_code == 0
    assert objects(trigmon("queue", "show", "OB.AGAIN", "--output", "json"))[0]["max_q_depth"] == 5000


def test_messages_are_cleared_and_moved(trigmon: Trigmon, qm):
    trigmon("queue", "define", "OB.FROM")
    trigmon("queue", "define", "OB.TO")
    qm.put_many("OB.FROM", [b"m"] * 600)
    assert trigmon("queue", "delete", "OB.FROM").exit_code == 5
    assert objects(trigmon("queue", "move", "OB.FROM", "OB.TO", "--count", "300", "--output", "json")) == [
        {"q_name": "OB.FROM", "to_q_name": "OB.TO", "messages": 300}
    ]
    assert trigmon("queue", "move", "OB.FROM", "OB.TO").stdout == "300 messages moved from OB.FROM to OB.TO\n"
    assert trigmon("queue", "clear", "OB.TO").stdout == "600 messages deleted from OB.TO\n"


def test_a_queue_in_use_is_not_deleted(trigmon: Trigmon, qm):
    trigmon("queue", "define", "OB.OPEN")
    with qm.open("OB.OPEN", "output"):
        refused = trigmon("queue", "delete", "OB.OPEN")
    assert refused.exit_code == 5
    assert "QLOCAL(OB.OPEN) is open" in refused.stderr
    assert "TYPE(HANDLE)" in refused.stderr


def test_a_process_is_defined_shown_altered_listed_and_deleted(trigmon: Trigmon):
    assert trigmon("process", "define", "OB.P", "appl_id=/bin/true", "INSTANCES=2").exit_code == 0
    assert trigmon("process", "alter", "OB.P", "appl_type=spark").exit_code == 0
    (shown,) = objects(trigmon("process", "show", "OB.P", "--output", "json"))
    assert (shown["appl_type"], shown["appl_id"], shown["instances"]) == ("spark", "/bin/true", 2)
    assert "OB.P" in trigmon("process", "list").stdout
    assert trigmon("process", "delete", "OB.P").exit_code == 0
    assert trigmon("process", "show", "OB.P").exit_code == 3


def test_a_process_is_started_by_a_trigger_message(trigmon: Trigmon, qm):
    trigmon("queue", "define", "OB.INITQ")
    trigmon("process", "define", "OB.START", "appl_type=70000", "appl_id=/bin/true", "user_data=u")
    assert trigmon("process", "start", "OB.START").exit_code == 2
    trigmon("queue", "define", "OB.SERVED", "process_name=OB.START", "initiation_q_name=OB.INITQ", "TRIGDATA=d")
    started = trigmon("process", "start", "OB.START")
    assert started.exit_code == 0
    assert "no monitor reads OB.INITQ now" in started.stderr
    (message,) = objects(trigmon("get", "OB.INITQ", "--output", "json"))
    assert message["format"] == "MQTRIG"
    assert message["trigger_message"] == {
        "q_name": "OB.SERVED",
        "process_name": "OB.START",
        "trigger_data": "d",
        "appl_type": 70000,
        "appl_id": "/bin/true",
        "env_data": "",
        "user_data": "u",
    }


def test_apply_prints_the_difference_then_makes_it_and_then_has_nothing_to_do(trigmon: Trigmon, tmp_path: Path):
    file = tmp_path / "q.yaml"
    file.write_text("- qlocal: OB.APPLIED\n  trigger_type: depth\n  trigger_depth: 5\n")
    dry = trigmon("apply", "--dry-run", str(file))
    assert dry.stdout == "+ QLOCAL OB.APPLIED define\n    trigger_type: depth\n    trigger_depth: 5\n"
    assert "nothing was changed" in dry.stderr
    assert trigmon("queue", "show", "OB.APPLIED").exit_code == 3
    assert trigmon("apply", str(file)).exit_code == 0
    file.write_text("- qlocal: OB.APPLIED\n  trigger_depth: 6\n")
    (change,) = objects(trigmon("apply", str(file), "--output", "json"))
    assert change == {
        "action": "alter",
        "object_type": "QLOCAL",
        "name": "OB.APPLIED",
        "changes": [{"attribute": "trigger_depth", "before": 5, "after": 6}],
        "where": f"{file}:1",
    }
    again = trigmon("apply", str(file))
    assert (again.exit_code, again.stdout) == (0, "")
    assert "nothing to do" in again.stderr


def test_apply_changes_nothing_when_a_file_is_wrong(trigmon: Trigmon, tmp_path: Path):
    file = tmp_path / "q.yaml"
    file.write_text("- qlocal: OB.WRONG\n- qlocal: OB.WRONG2\n  trigger_typ: first\n")
    result = trigmon("apply", str(file))
    assert result.exit_code == 1
    assert f"{file}:3: QLOCAL OB.WRONG2: unknown key 'trigger_typ'; the nearest known one is" in result.stderr
    assert trigmon("queue", "show", "OB.WRONG").exit_code == 3


def test_apply_says_how_far_it_came_when_it_is_refused(trigmon: Trigmon, tmp_path: Path, qm):
    file = tmp_path / "q.yaml"
    file.write_text("- qlocal: OB.FIRST\n")
    trigmon("queue", "define", "OB.FULL")
    qm.put("OB.FULL", b"m")
    result = trigmon("apply", "--prune", str(file))
    assert result.exit_code == 5
    assert "then delete QLOCAL OB.FULL was refused" in result.stderr


def test_prune_needs_no_file_to_name_a_system_object(daemon, tmp_path: Path):
    one = daemon()
    file = tmp_path / "q.yaml"
    file.write_text("- qlocal: KEPT\n")
    one.trigmon("queue", "define", "OLD")
    done = one.trigmon("apply", "--prune", str(file))
    assert [line for line in done.stdout.splitlines() if line[0] in "+-~"] == [
        "+ QLOCAL KEPT defined",
        "- QLOCAL OLD deleted",
    ]
    assert "SYSTEM.DEFAULT.LOCAL.QUEUE" in one.trigmon("queue", "list", "--system").stdout


def test_what_is_exported_loads_into_another_queue_manager(trigmon: Trigmon, daemon, tmp_path: Path):
    trigmon("queue", "define", "OB.EXPORT", "DESCR=it's on", "TRIGGER", "TRIGTYPE=every")
    trigmon("process", "define", "OB.EXPORT", "spark_master=local[2]", "spark_conf=a=1")
    exported = trigmon("export", "--yaml")
    (tmp_path / "all.yaml").write_text(exported.stdout)
    other = daemon("QM2")
    assert other.trigmon("apply", str(tmp_path / "all.yaml")).returncode == 0
    same = other.trigmon("export", "--yaml").stdout
    assert same.partition("\n")[2] == exported.stdout.partition("\n")[2]
    script = trigmon("export", "--mqsc").stdout
    loaded = other.trigmon("mqsc", input=script)
    assert (loaded.returncode, loaded.stdout.splitlines()[-1]) == (0, "All valid MQSC commands were processed.")


def test_export_asks_for_its_form():
    assert run_cli("export").exit_code == 2


def test_mqsc_reads_a_file_or_standard_input_and_keeps_mqs_exit_codes(trigmon: Trigmon, tmp_path: Path):
    file = tmp_path / "a.mqsc"
    file.write_text("DEFINE QLOCAL(OB.MQSC) +\n  TRIGGER\n")
    assert "AMQ8006I" in trigmon("mqsc", str(file)).stdout
    failed = trigmon("mqsc", input="DEFINE QLOCAL(OB.MQSC)\nEND\n")
    assert failed.exit_code == 10
    assert "AMQ8150E" in failed.stdout
    nobody = run_cli("mqsc", "--qmgr", "NOBODY", input="PING QMGR\n")
    assert nobody.exit_code == 20
    assert "AMQ8146E" in nobody.stderr


def test_status_shows_the_queue_manager_and_who_reads_initiation_queues(trigmon: Trigmon):
    trigmon("queue", "define", "OB.ST", "initiation_q_name=SYSTEM.DEFAULT.INITIATION.QUEUE")
    (status,) = objects(trigmon("status", "--output", "json"))
    assert status["q_mgr_name"] == "QM1"
    assert status["initiation_queues"][0]["name"] == "SYSTEM.DEFAULT.INITIATION.QUEUE"
    table = trigmon("status")
    assert "SYSTEM.DEFAULT.INITIATION.QUEUE" in table.stdout
    assert "nobody reads SYSTEM.DEFAULT.INITIATION.QUEUE" in table.stderr


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


def test_nobody_there_is_exit_6_with_the_remedy():
    result = run_cli("status", "--qmgr", "NOBODY")
    assert (result.exit_code, result.stdout) == (6, "")
    assert "MQRC_Q_MGR_NOT_AVAILABLE (2059)" in result.stderr
    assert "trigmon run" in result.stderr


def test_runs_are_listed_shown_and_their_output_read(trigmon: Trigmon, qm, tmp_path: Path):
    from trigmon.mq.calls import RecordRun

    (tmp_path / "stdout").write_bytes(b"loaded 842\n")
    (tmp_path / "stderr").write_bytes(b"a warning\n")
    record = {"state": "exited", "process_name": "P", "q_name": "Q", "start_ms": 1_000_000, "end_ms": 1_002_500}
    record |= {"exit_status": 0, "argv": ["/bin/true", "x"], "directory": str(tmp_path), "recorded_ms": 999_000}
    qm.call(RecordRun(run_id="r1", record=record))
    qm.call(RecordRun(run_id="r2", record=record | {"state": "failed", "directory": "", "stderr_tail": "no such file"}))
    assert [row["run_id"] for row in objects(trigmon("runs", "list", "--state", "exited", "--output", "json"))] == [
        "r1"
    ]
    assert "2.5" in trigmon("runs", "list", "--queue", "Q").stdout
    (shown,) = objects(trigmon("runs", "show", "r1", "--output", "json"))
    assert (shown["argv"], shown["duration_s"], shown["start_time"]) == (
        ["/bin/true", "x"],
        2.5,
        "1970-01-01T00:16:40.000Z",
    )
    logs = trigmon("runs", "logs", "r1")
    assert (logs.stdout, logs.stderr) == ("loaded 842\n", "a warning\n")
    assert trigmon("runs", "logs", "r1", "--stream", "stderr").stdout == "a warning\n"
    assert "no such file" in trigmon("runs", "logs", "r2").stderr
    assert objects(trigmon("runs", "show", "--output", "json"))[0]["run_id"] == "r2"
    assert trigmon("runs", "show", "nope").exit_code == 3
    assert json.loads(trigmon("runs", "list", "--count", "1", "--output", "json").stdout)["run_id"] == "r2"


def test_the_shipped_definitions_name_a_dead_letter_queue_and_applied_again_change_nothing(daemon):
    house = daemon()
    shipped = [str(places.shipped("config") / "queues.yaml"), str(places.shipped("process_defs"))]
    assert house.trigmon("apply", *shipped).returncode == 0
    with house.connect() as qm:
        (row,) = qm.call(Display(object_type="QMGR")).rows
    assert row["dead_letter_q_name"] == "SYSTEM.DEAD.LETTER.QUEUE"
    again = house.trigmon("apply", "--dry-run", *shipped, "--output", "json")
    assert (again.returncode, again.stdout) == (0, "")

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.conftest import Trigmon, objects, run_cli
from tests.daemons import define
from tests.strangers import as_nobody
from trigmon import paths
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


def test_default_and_def_are_one_word(trigmon: Trigmon):
    words = ["default_persistence=persistent", "DEFAULT_PRIORITY=3"]
    assert trigmon("queue", "define", "OB.DEFAULTS", *words).exit_code == 0
    (shown,) = objects(trigmon("queue", "show", "OB.DEFAULTS", "--output", "json"))
    assert (shown["def_persistence"], shown["def_priority"]) == ("persistent", 3)
    again = trigmon("queue", "alter", "OB.DEFAULTS", "def_priority=1", "default_priority=2")
    assert (again.exit_code, "def_priority was already given" in again.stderr) == (2, True)


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


def test_a_remote_and_a_model_queue_are_defined_shown_altered_listed_and_deleted(trigmon: Trigmon):
    remote = ["queue", "define", "OB.R", "--type", "qremote", "RNAME=ORDERS", "remote_q_mgr_name=QM9", "XMITQ=OB.XQ"]
    assert trigmon(*remote).stdout == "QREMOTE OB.R defined\n"
    model = ["queue", "define", "OB.MODEL", "--type", "qmodel", "DEFTYPE=PERMDYN", "TRIGGER", "TRIGDPTH=5"]
    assert trigmon(*model).stdout == "QMODEL OB.MODEL defined\n"
    assert trigmon("queue", "alter", "OB.R", "RQMNAME=QM8").exit_code == 0
    assert trigmon("queue", "alter", "OB.MODEL", "NOTRIGGER").exit_code == 0
    (shown,) = objects(trigmon("queue", "show", "OB.R", "--output", "json"))
    assert (shown["q_type"], shown["remote_q_name"], shown["remote_q_mgr_name"]) == ("remote", "ORDERS", "QM8")
    (shown,) = objects(trigmon("queue", "show", "OB.MODEL", "--output", "json"))
    assert (shown["q_type"], shown["definition_type"]) == ("model", "permanent_dynamic")
    assert (shown["trigger_control"], shown["trigger_depth"]) == ("off", 5)
    listed = trigmon("queue", "list", "OB.R").stdout + trigmon("queue", "list", "OB.MODEL").stdout
    assert ["OB.R", "QREMOTE"] in [line.split()[:2] for line in listed.splitlines()]
    assert ["OB.MODEL", "QMODEL"] in [line.split()[:2] for line in listed.splitlines()]
    for name in ("OB.R", "OB.MODEL"):
        assert trigmon("queue", "delete", name).exit_code == 0
        assert trigmon("queue", "show", name).exit_code == 3


def test_a_type_and_alias_of_must_agree(trigmon: Trigmon):
    result = trigmon("queue", "define", "OB.X", "--alias-of", "OB.Y", "--type", "qremote")
    assert result.exit_code == 2
    assert "--alias-of defines an alias" in result.stderr


def test_a_dynamic_queue_is_shown_moved_to_and_left_out_of_what_files_say(trigmon: Trigmon, qm, tmp_path: Path):
    trigmon("queue", "define", "DY.MODEL", "--type", "qmodel", "DEFTYPE=PERMDYN")
    trigmon("queue", "define", "DY.FROM")
    qm.put("DY.FROM", b"m")
    made = qm.open("DY.MODEL", "output", dynamic_q_name="DY.MADE")
    assert trigmon("queue", "move", "DY.FROM", "DY.MADE").exit_code == 0
    (shown,) = objects(trigmon("queue", "show", "DY.MADE", "--output", "json"))
    assert (shown["definition_type"], shown["current_q_depth"]) == ("permanent_dynamic", 1)
    for form in ("--yaml", "--mqsc"):
        exported = trigmon("export", form).stdout
        assert "DY.MODEL" in exported
        assert "DY.MADE" not in exported
    made.close(purge=True)
    assert trigmon("queue", "show", "DY.MADE").exit_code == 3


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
    ("words", "expected"),
    [
        (["trigger_typ=first"], "no attribute trigger_typ; did you mean 'trigger_type'?"),
        (["TRIGDPTH=0"], "trigger_depth must be 1 to 999999999"),
        (["TRIGTYPE=first", "trigger_type=every"], "trigger_type was already given"),
        (["TRIGGR"], "did you mean 'TRIGGER'?"),
    ],
)
def test_a_wrong_attribute_is_a_usage_error_before_anything_is_asked(words: list[str], expected: str):
    result = run_cli("queue", "define", "Q", *words, "--qmgr", "NOBODY")
    assert result.exit_code == 2
    assert expected in result.stderr


def test_define_again_is_refused_and_replaced_by_option(trigmon: Trigmon):
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


def test_an_empty_queue_is_moved_by_a_user_with_the_right_and_to_where_there_is_something(trigmon: Trigmon):
    trigmon("queue", "define", "OB.EMPTY")
    assert trigmon("queue", "move", "OB.EMPTY", "SYSTEM.DEAD.LETTER.QUEUE").exit_code == 0
    nowhere = trigmon("queue", "move", "OB.EMPTY", "OB.NOWHERE")
    assert (nowhere.exit_code, nowhere.stdout) == (3, "")
    assert "MQRC_UNKNOWN_OBJECT_NAME (2085): OB.NOWHERE" in nowhere.stderr


def test_an_empty_queue_is_not_moved_by_a_stranger(passable):
    one = passable(settings={"server.socket_mode": "0666"})
    with one.connect() as qm:
        define(qm, "OB.EMPTY")

    def move() -> tuple[int, str, str]:
        result = run_cli("queue", "move", "OB.EMPTY", "SYSTEM.DEAD.LETTER.QUEUE", "--qmgr", one.address)
        return result.exit_code, result.stdout, result.stderr

    assert move()[:2] == (0, "0 messages moved from OB.EMPTY to SYSTEM.DEAD.LETTER.QUEUE\n")
    code, out, err = as_nobody(move)
    assert (code, out) == (4, "")
    assert "MQRC_NOT_AUTHORIZED (2035)" in err


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


def test_a_process_whose_program_could_not_be_started_is_not_defined(trigmon: Trigmon):
    refused = trigmon("process", "define", "OB.WRONG", "APPLICID=a 'b")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "PROCESS(OB.WRONG) APPLICID(a 'b): appl_id must be words as a shell splits them" in refused.stderr
    assert trigmon("process", "show", "OB.WRONG").exit_code == 3


def test_a_driver_that_strangers_may_speak_to_is_named_when_it_is_defined(trigmon: Trigmon, tmp_path: Path):
    file = tmp_path / "q.yaml"
    expected = (
        "- process: OB.OPEN\n  appl_type: spark\n  appl_id: /job.py\n  spark: {conf: {spark.driver.host: 10.0.0.1}}\n"
    )
    file.write_text(expected)
    warned = trigmon("apply", str(file))
    opened = "PROCESS OB.OPEN has a Spark driver that other users can connect to: SPKCONF(spark.driver.host=10.0.0.1)"
    assert (warned.exit_code, warned.stderr) == (0, f"trigmon: {file}:1: {opened}\n")
    file.write_text("- process: OB.OPEN\n  description: another line\n")
    assert opened in trigmon("apply", str(file)).stderr
    trigmon("process", "delete", "OB.OPEN")


def test_the_commands_of_processes_name_such_a_driver_too(trigmon: Trigmon):
    words = ("appl_type=spark", "appl_id=/job.py", "spark_conf=spark.driver.host=10.0.0.1")
    warned = trigmon("process", "define", "OB.OPEN2", *words)
    assert "PROCESS OB.OPEN2 has a Spark driver that other users can connect to" in warned.stderr
    closed = trigmon("process", "alter", "OB.OPEN2", "spark_conf=")
    assert (closed.exit_code, closed.stderr) == (0, "")


def test_a_process_without_a_program_may_be_defined_and_is_not_started(trigmon: Trigmon, tmp_path: Path):
    file = tmp_path / "q.yaml"
    file.write_text("- process: OB.BLANK\n  user_data: u\n- process: SYSTEM.DEFAULT.PROCESS\n")
    warned = trigmon("apply", str(file))
    assert warned.exit_code == 0
    expected = f"trigmon: {file}:1: PROCESS OB.BLANK has a blank APPLICID (appl_id): there is no program to start\n"
    assert warned.stderr == expected
    refused = trigmon("process", "start", "OB.BLANK", "--queue", "SYSTEM.DEFAULT.LOCAL.QUEUE")
    assert refused.exit_code == 2
    assert "trigmon process alter OB.BLANK APPLICID=PROGRAM" in refused.stderr
    trigmon("process", "alter", "OB.BLANK", "APPLICID=/bin/true")
    assert "nothing to do" in (again := trigmon("apply", str(file))).stderr
    assert "blank" not in again.stderr


def test_a_process_is_started_by_a_trigger_message(trigmon: Trigmon, qm):
    trigmon("queue", "define", "OB.INITQ")
    trigmon("process", "define", "OB.START", "appl_type=70000", "appl_id=/bin/true", "user_data=u")
    assert trigmon("process", "start", "OB.START").exit_code == 2
    other = trigmon("process", "start", "OB.START", "--queue", "OB.INITQ", "--initq", "OB.INITQ")
    assert other.exit_code == 2
    assert "QLOCAL(OB.INITQ) names process none, not OB.START" in other.stderr
    assert "trigmon queue alter OB.INITQ PROCESS=OB.START" in other.stderr
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


def test_apply_names_each_that_is_refused_and_makes_the_others(daemon, tmp_path: Path):
    one = daemon()
    file = tmp_path / "q.yaml"
    file.write_text("".join(f"- qlocal: OB.{number:03}\n" for number in range(300)))
    with one.connect() as qm:
        for name in ("A.EMPTY", "B.FULL", "C.EMPTY", "D.FULL"):
            one.trigmon("queue", "define", name)
            if name.endswith("FULL"):
                qm.put(name, b"m")
    result = one.trigmon("apply", "--prune", str(file))
    assert result.returncode == 5
    assert "302 of 304 changes were made" in result.stderr
    assert "delete QLOCAL B.FULL, delete QLOCAL D.FULL was refused" in result.stderr
    assert "D.FULL) holds 1 messages" in result.stderr
    made = [line for line in result.stdout.splitlines() if line[0] in "+-~"]
    assert made[:2] == ["+ QLOCAL OB.000 defined", "+ QLOCAL OB.001 defined"]
    assert made[-2:] == ["- QLOCAL A.EMPTY deleted", "- QLOCAL C.EMPTY deleted"]
    assert len(made) == 302


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


def test_export_asks_for_its_form_and_takes_one():
    assert run_cli("export").exit_code == 2
    both = run_cli("export", "--mqsc", "--yaml")
    assert (both.exit_code, both.stdout) == (2, "")
    assert "--mqsc and --yaml exclude each other" in both.stderr


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


def test_status_shows_the_queue_manager_and_the_monitors_of_initiation_queues(trigmon: Trigmon):
    trigmon("queue", "define", "OB.ST", "initiation_q_name=SYSTEM.DEFAULT.INITIATION.QUEUE")
    (status,) = objects(trigmon("status", "--output", "json"))
    assert status["q_mgr_name"] == "QM1"
    assert "SYSTEM.DEFAULT.INITIATION.QUEUE" in [queue["name"] for queue in status["initiation_queues"]]
    table = trigmon("status")
    assert "SYSTEM.DEFAULT.INITIATION.QUEUE" in table.stdout
    assert "no monitor reads SYSTEM.DEFAULT.INITIATION.QUEUE" in table.stderr


def test_the_attributes_of_the_queue_manager_are_shown_by_a_command_of_their_own(trigmon: Trigmon):
    (shown,) = objects(trigmon("qmgr", "show", "--output", "json"))
    assert (shown["name"], "trigger_interval" in shown) == ("QM1", True)
    assert "trigger_interval" not in trigmon("status").stdout


def test_what_needs_attention_stands_first_in_status(trigmon: Trigmon):
    assert trigmon("status").stdout.splitlines()[0] == "needs attention  nothing"
    trigmon("queue", "define", "OB.NEARLY", "MAXDEPTH=1")
    trigmon("put", "OB.NEARLY", "m")
    (status,) = objects(trigmon("status", "--output", "json"))
    (item,) = status["attention"]
    assert (item["kind"], item["name"]) == ("nearly_full", "OB.NEARLY")
    lines = trigmon("status").stdout.splitlines()
    assert lines[0].startswith("needs attention  1: ")
    assert lines[2].split()[:2] == ["OB.NEARLY", "nearly_full"]
    trigmon("queue", "delete", "OB.NEARLY", "--purge")


def test_nobody_there_is_exit_6_with_the_remedy():
    result = run_cli("status", "--qmgr", "NOBODY")
    assert (result.exit_code, result.stdout) == (6, "")
    assert "MQRC_Q_MGR_NOT_AVAILABLE (2059)" in result.stderr
    assert "trigmon run" in result.stderr


def test_the_shipped_definitions_name_a_dead_letter_queue_and_applied_again_change_nothing(daemon):
    one = daemon()
    shipped = [str(paths.shipped("config") / "queues.yaml"), str(paths.shipped("process_defs"))]
    assert one.trigmon("apply", *shipped).returncode == 0
    with one.connect() as qm:
        (row,) = qm.call(Display(object_type="QMGR")).rows
    assert row["dead_letter_q_name"] == "SYSTEM.DEAD.LETTER.QUEUE"
    again = one.trigmon("apply", "--dry-run", *shipped, "--output", "json")
    assert (again.returncode, again.stdout) == (0, "")


def test_a_process_of_a_program_is_shown_without_sparks_attributes_unless_one_is_set(trigmon: Trigmon):
    trigmon("process", "define", "SHOWN.UNIX", "appl_type=unix", "appl_id=true")
    shown = trigmon("process", "show", "SHOWN.UNIX").stdout
    assert "retry_wait_s" in shown
    assert "spark_" not in shown
    trigmon("process", "alter", "SHOWN.UNIX", "spark_environment=A=b")
    assert [
        line.split() for line in trigmon("process", "show", "SHOWN.UNIX").stdout.splitlines() if "spark" in line
    ] == [["spark_environment", "A=b"]]
    assert "spark_conf" in objects(trigmon("process", "show", "SHOWN.UNIX", "--output", "json"))[0]
    trigmon("process", "alter", "SHOWN.UNIX", "appl_type=spark", "appl_id=job.py")
    assert "spark_conf" in trigmon("process", "show", "SHOWN.UNIX").stdout


def test_a_namelist_is_defined_shown_altered_listed_and_deleted(trigmon: Trigmon):
    defined = trigmon("namelist", "define", "OB.NL", "names=ORDERS,Pay.ments", "DESCR=at night")
    assert (defined.exit_code, defined.stdout) == (0, "NAMELIST OB.NL defined\n")
    assert trigmon("namelist", "alter", "OB.NL", "NAMES=ORDERS,RETURNS,C").exit_code == 0
    (shown,) = objects(trigmon("namelist", "show", "OB.NL", "--output", "json"))
    assert (shown["names"], shown["name_count"]) == (["ORDERS", "RETURNS", "C"], 3)
    head, row = trigmon("namelist", "list", "OB.N*").stdout.splitlines()
    assert (head.split()[:3], row.split()[:2]) == (["name", "name_count", "names"], ["OB.NL", "3"])
    assert trigmon("namelist", "define", "OB.NL2", "--like", "OB.NL").exit_code == 0
    assert "namelist: OB.NL2" in trigmon("export", "--yaml").stdout
    assert trigmon("namelist", "alter", "OB.NL", "names=two words").exit_code == 0
    assert trigmon("namelist", "alter", "OB.NL", "names=a!").exit_code == 2
    assert trigmon("namelist", "delete", "OB.NL").stdout == "NAMELIST OB.NL deleted\n"
    assert trigmon("namelist", "show", "OB.NL").exit_code == 3

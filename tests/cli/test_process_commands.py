"""``trigmon process``: how processes are defined, shown and started, and what is said of them."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Trigmon, objects


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

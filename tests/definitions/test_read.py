from __future__ import annotations

from pathlib import Path

import pytest

from trigmon.definitions.definition_files import DefinitionError, Wanted, read_files, read_text
from trigmon.mq.attributes import ATTRIBUTES
from trigmon.mq.enums import (
    ApplType,
    ObjectType,
    Persistence,
    SparkDeployMode,
    SparkIsolation,
    SparkShort,
    SparkStart,
    TriggerControl,
    TriggerType,
    YesNo,
)


def one(text: str) -> Wanted:
    (wanted,) = read_text(text)
    return wanted


def problems(text: str) -> list[str]:
    with pytest.raises(DefinitionError) as caught:
        read_text(text, "q.yaml")
    return caught.value.problems


def test_a_list_holds_objects():
    found = read_text("- qlocal: A\n- qalias: B\n  base_q_name: A\n- process: P\n- qmgr:\n  trigger_interval: 1000\n")
    assert [(w.object_type, w.name) for w in found] == [
        ("QLOCAL", "A"),
        ("QALIAS", "B"),
        ("PROCESS", "P"),
        ("QMGR", ""),
    ]
    assert found[1].attributes == {"base_q_name": "A"}
    assert found[3].attributes == {"trigger_interval": 1000}


@pytest.mark.parametrize("key", ["trigger_type", "TRIGTYPE", "trigtype", "Trigger_Type"])
@pytest.mark.parametrize("value", ["depth", "DEPTH", "3"])
def test_an_attribute_is_named_by_long_name_or_mqsc_word(key: str, value: str):
    assert one(f"- qlocal: A\n  {key}: {value}").attributes == {"trigger_type": TriggerType.DEPTH}


def test_default_is_written_out_or_not():
    assert one("- qlocal: A\n  default_persistence: persistent").attributes == {
        "def_persistence": Persistence.PERSISTENT
    }
    assert one("- qlocal: A\n  DEFPSIST: yes").attributes == {"def_persistence": Persistence.PERSISTENT}


@pytest.mark.parametrize("word", ["on", "yes", "true", "TRIGGER", "1"])
def test_a_switch_is_on_in_any_word(word: str):
    assert one(f"- qlocal: A\n  trigger_control: {word}").attributes == {"trigger_control": TriggerControl.ON}


def test_a_number_is_text_where_text_belongs():
    assert one("- qlocal: A\n  trigger_data: 2013").attributes == {"trigger_data": "2013"}


@pytest.mark.parametrize("text", ["012", "007", "1.10", "1e3", "0x1F", "true", "2026-11-20", "-0", "off"])
def test_text_is_what_is_written_and_no_number(text):
    assert one(f"- qlocal: A\n  description: {text}").attributes == {"description": text}
    process = one(f"- process: P\n  env_data: {text}\n  spark: {{conf: {{k: {text}}}, arguments: [{text}]}}")
    wanted = {"env_data": text, "spark_conf": f"k={text}", "spark_arguments": text}
    assert {name: process.attributes[name] for name in wanted} == wanted


@pytest.mark.parametrize("name", ["012", "1.10", "true"])
def test_a_name_is_what_is_written(name):
    assert one(f"- qlocal: {name}").name == name


def test_a_number_is_still_read_as_a_person_reads_it():
    assert one("- qlocal: A\n  trigger_depth: 012").attributes == {"trigger_depth": 12}


def test_a_text_without_a_value_is_refused():
    with pytest.raises(DefinitionError, match="description has no value"):
        one("- qlocal: A\n  description: ~")


def test_only_what_the_file_names_is_wanted():
    assert one("- qlocal: A").attributes == {}


def test_an_unknown_key_is_refused_with_its_place_and_the_nearest():
    assert problems("- qlocal: A\n  trigger_typ: first") == [
        "q.yaml:2: QLOCAL A: unknown key 'trigger_typ'; the nearest known one is 'trigger_type'"
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- qlocal: A\n  trigger_depth: 0", "q.yaml:2: QLOCAL A: trigger_depth must be 1 to 999999999, not 0"),
        ("- qlocal: A\n  trigger_type:", "q.yaml:2: QLOCAL A: trigger_type has no value"),
        ("- qlocal: A\n  TRIGTYPE: first\n  trigger_type: every", "q.yaml:3: QLOCAL A: trigger_type sets again"),
        ("- qlocal: A\n- qalias: A", "q.yaml:2: QALIAS A was already defined at q.yaml:1"),
        ("- qlocal: a b", "q.yaml:1: QLOCAL 'a b': a name has 1 to 48"),
        ("- qlocal:", "q.yaml:1: QLOCAL '': a name has 1 to 48"),
        ("- qlocl: A", "q.yaml:1: unknown kind of object 'qlocl'; the nearest known one is 'qlocal'"),
        ("- A", "q.yaml:1: an item is a mapping"),
        ("- usage: normal\n  qlocal: A", 'put "qlocal: ..." first'),
        ("- service: A", "q.yaml:1: service comes with a later release"),
        ("- qlocal: A\n  indxtype: none", "q.yaml:2: QLOCAL A: indxtype comes with a later release"),
        ("- qalias: A\n  qsgdisp: shared", "q.yaml:2: QALIAS A: qsg_disp must be QMGR or COPY or GROUP, not shared"),
        ("qlocal: A", 'q.yaml:1: objects stand in a list: write "- qlocal: A"'),
        ("hello", "q.yaml:1: a definition file is a list"),
        ("- qlocal: A\n  maxdepth: 1.5", "q.yaml:2: QLOCAL A: max_q_depth must be"),
        ("- process: P\n  spark: {reservation: 9}", "q.yaml:2: PROCESS P: reservation comes with a later release"),
        ("- process: P\n  launch:\n    retry_wait_s: 0", "q.yaml:3: PROCESS P: PROCESS(P) RETRYWAIT(0): "),
        ("- process: P\n  launch: {instance: 3}", "q.yaml:2: PROCESS P: unknown key 'instance'"),
        ("- process: P\n  launch: {instances: many}", "q.yaml:2: PROCESS P: launch.instances: input should be"),
        (
            "- process: P\n  spark: {start: session}",
            "q.yaml:2: PROCESS P: PROCESS(P) SPKSTART(session): spark_start must be SUBMIT or CONNECT or REST",
        ),
        (
            "- process: P\n  appl_id: a 'b",
            "q.yaml:2: PROCESS P: appl_id must be words as a shell splits them (no closing quotation), not a 'b",
        ),
        ("- process: P\n  appl_id: '{queue}'", "q.yaml:2: PROCESS P: appl_id must be words of which the first is the"),
        ("- process: P\n  SPKCONF: a\n  appl_type: spark", "q.yaml:2: PROCESS P: spark_conf must be words of the form"),
        (
            "- process: P\n  spark:\n    driver_memory: 2",
            "q.yaml:3: PROCESS P: spark_driver_memory must be a whole number",
        ),
        ("- process: P\n  spark: {files: ['a,b']}", "spark.files.0: an item is one name, without a comma, not 'a,b'"),
        ("- process: P\n  spark: {jars: [a.jar, '']}", "spark.jars.1: an item is one name, without a comma, not ''"),
        (
            "- process: P\n  spark: {class_: A}",
            "q.yaml:2: PROCESS P: unknown key 'class_'; the nearest known one is 'class'",
        ),
        (
            "- process: P\n  spark:\n    master: spark://m:7077\n    start: connect",
            "q.yaml:3: PROCESS P: spark_master must",
        ),
        ("- process: P\n  spark:\n    start: rest", "spark_master must be spark://HOST:PORT with SPKSTART(REST)"),
        ("- process: P\n  spark: {conf: [a]}", "q.yaml:2: PROCESS P: spark.conf: input should be"),
        ("- process: P\n  spark: {arguments: [[a]]}", "spark.arguments.0: a word or a number belongs here"),
        ("- process: P\n  spark: {master: yarn}\n  spark_master: local", "PROCESS P: spark_master is set twice"),
        ("- process: P\n  spark: {arguments: ['a\\nb', \"a\\nb\"]}", "PROCESS(P) SPKARGS"),
        ("- qlocal: [", "q.yaml:"),
    ],
)
def test_a_mistake_is_named_with_its_line(text: str, said: str):
    (problem,) = problems(text)
    assert said in problem


def test_every_mistake_is_named_at_once():
    assert [p.split(":")[1] for p in problems("- qlocal: A\n  x: 1\n  maxdepth: -1\n- qlocl: B\n- service: C\n")] == [
        "3",
        "2",
        "4",
        "5",
    ]


SAMPLE = """
appl_type: spark                # unix | spark | a number
appl_id: flights_load.py        # program or PySpark file, relative to this file
user_data: "table=flights"
spark: {master: "local[2]", start: submit, conf: {spark.sql.shuffle.partitions: 2, spark.ui.enabled: false},
        py_files: [a.py, b.zip], arguments: ["--queue", "{queue}", it's, 5]}
launch: {instances: 1, time_limit_s: 90}
"""


def test_a_mapping_is_the_process_of_its_files_stem(tmp_path: Path):
    file = tmp_path / "FLIGHTS.LOAD.yaml"
    file.write_text(SAMPLE)
    (wanted,) = read_files([tmp_path])
    assert (wanted.object_type, wanted.name, wanted.where) == ("PROCESS", "FLIGHTS.LOAD", f"{file}:1")
    assert wanted.attributes == {
        "appl_type": ApplType.SPARK,
        "appl_id": "flights_load.py",
        "user_data": "table=flights",
        "spark_start": SparkStart.SUBMIT,
        "spark_master": "local[2]",
        "spark_conf": "spark.sql.shuffle.partitions=2 spark.ui.enabled=false",
        "spark_py_files": "a.py,b.zip",
        "spark_arguments": "--queue '{queue}' 'it'\"'\"'s' 5",
        "instances": 1,
        "time_limit_s": 90,
        "working_directory": str(tmp_path),
        "tmc_argument": YesNo.NO,
    }


WHOLE_GROUP = """
- process: P
  appl_type: spark
  appl_id: load.jar
  spark:
    start: connect
    isolation: process
    short: true
    master: yarn
    deploy_mode: cluster
    name: Flights of {queue}
    class: org.example.Load
    conf: {spark.ui.enabled: false}
    py_files: [a.py]
    files: [b.txt, c.txt]
    archives: ["d.zip#d"]
    jars: [e.jar]
    packages: ["g:f:1.0"]
    driver_memory: 2g
    driver_cores: 2
    executor_memory: 512m
    executor_cores: 012
    num_executors: 3
    principal: load/host@REALM
    keytab: load.keytab
    environment: {DAY: 012, WORDS: "two words"}
    arguments: [one]
"""


def test_the_spark_group_says_every_attribute_of_spark():
    (wanted,) = read_text(WHOLE_GROUP, "q.yaml")
    assert {name: value for name, value in wanted.attributes.items() if name.startswith("spark_")} == {
        "spark_start": SparkStart.CONNECT,
        "spark_isolation": SparkIsolation.PROCESS,
        "spark_short": SparkShort.YES,
        "spark_master": "yarn",
        "spark_deploy_mode": SparkDeployMode.CLUSTER,
        "spark_name": "Flights of {queue}",
        "spark_class": "org.example.Load",
        "spark_conf": "spark.ui.enabled=false",
        "spark_py_files": "a.py",
        "spark_files": "b.txt,c.txt",
        "spark_archives": "d.zip#d",
        "spark_jars": "e.jar",
        "spark_packages": "g:f:1.0",
        "spark_driver_memory": "2g",
        "spark_driver_cores": 2,
        "spark_executor_memory": "512m",
        "spark_executor_cores": 12,
        "spark_num_executors": 3,
        "spark_principal": "load/host@REALM",
        "spark_keytab": "load.keytab",
        "spark_environment": "DAY=012 'WORDS=two words'",
        "spark_arguments": "one",
    }
    assert {name for name in ATTRIBUTES[ObjectType.PROCESS] if name.startswith("spark_")} <= set(wanted.attributes)


@pytest.mark.parametrize(("given", "below"), [(".", ""), ("jobs/daily", "jobs/daily"), ("./jobs/", "jobs")])
def test_a_relative_working_directory_is_meant_from_the_directory_of_its_file(tmp_path: Path, given: str, below: str):
    (tmp_path / "P.yaml").write_text(f"working_directory: {given}\n")
    (wanted,) = read_files([tmp_path])
    assert wanted.attributes["working_directory"] == str(tmp_path / below)


def test_a_relative_virtualenv_is_meant_from_the_directory_of_its_file(tmp_path: Path):
    (tmp_path / "P.yaml").write_text("virtualenv: venv\n")
    assert read_files([tmp_path])[0].attributes["virtualenv"] == f"{tmp_path}/venv"


def test_the_environment_of_any_process_is_one_attribute(tmp_path: Path):
    (tmp_path / "P.yaml").write_text("environment:\n  DAY: 012\n  WORDS: two words\n")
    (wanted,) = read_files([tmp_path])
    assert wanted.attributes["spark_environment"] == "DAY=012 'WORDS=two words'"
    (tmp_path / "P.yaml").write_text("environment: {A: b}\nspark: {environment: {A: c}}\n")
    with pytest.raises(DefinitionError, match="spark_environment is set twice"):
        read_files([tmp_path])
    (tmp_path / "P.yaml").write_text("environment:\n  TRIGMON_RUN: b\n")
    with pytest.raises(DefinitionError, match=r"P\.yaml:1: .*other variables than TRIGMON_RUN"):
        read_files([tmp_path])


def test_a_working_directory_that_is_named_is_meant_as_it_stands(tmp_path: Path):
    (tmp_path / "P.yaml").write_text("working_directory: /srv/jobs\n")
    (tmp_path / "Q.yaml").write_text('working_directory: ""\n')
    assert [w.attributes["working_directory"] for w in read_files([tmp_path])] == ["/srv/jobs", ""]


def test_a_directory_is_its_definition_files_without_the_settings(tmp_path: Path):
    (tmp_path / "b.yaml").write_text("- qlocal: B\n")
    (tmp_path / "a.yml").write_text("- qlocal: A\n")
    (tmp_path / "trigmon.yaml").write_text("qmgr: {name: QM1}\n")
    (tmp_path / "job.py").write_text("")
    assert [w.name for w in read_files([tmp_path])] == ["A", "B"]


def test_what_is_not_there_is_reported(tmp_path: Path):
    with pytest.raises(DefinitionError, match=r"none\.yaml: it cannot be read: No such file"):
        read_files([tmp_path / "none.yaml"])
    with pytest.raises(DefinitionError, match="holds no definition file"):
        read_files([tmp_path])


def test_the_shipped_queues_are_the_demos():
    found = {w.name: w.attributes for w in read_files([Path(__file__).parents[2] / "config" / "queues.yaml"])}
    assert found[""] == {"dead_letter_q_name": "SYSTEM.DEAD.LETTER.QUEUE", "trigger_interval": 60_000}
    flights = found["FLIGHTS.IN"]
    assert flights["def_persistence"] is Persistence.PERSISTENT
    assert flights["trigger_control"] is TriggerControl.ON
    assert flights["trigger_type"] is TriggerType.FIRST
    assert flights["process_name"] == "FLIGHTS.LOAD"
    assert flights["initiation_q_name"] == "SYSTEM.DEFAULT.INITIATION.QUEUE"

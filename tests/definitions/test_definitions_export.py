from __future__ import annotations

from contextlib import suppress

from hypothesis import given

from tests.any_objects import changed_defaults, commands
from tests.in_process import InProcess
from trigmon import yaml12
from trigmon.definitions.apply_plan import plan
from trigmon.definitions.definition_files import read_text
from trigmon.definitions.to_yaml import yaml_text
from trigmon.mq.calls import Alter, Call, Define
from trigmon.mq.errors import MQError


@given(commands)
def test_what_is_exported_loads_back_equal(given_commands: list[Call]):
    here, there = InProcess(), InProcess()
    for command in given_commands:
        with suppress(MQError):  # a name that exists already, as another type perhaps
            here(command)
    for step in plan(read_text(yaml_text(here.rows())), there.rows()):
        there(step.call)
    assert there.rows() == here.rows()


@given(changed_defaults)
def test_what_is_exported_with_the_system_objects_loads_back_equal(given_commands: list[Call]):
    here, there = InProcess(), InProcess()
    for command in given_commands:
        with suppress(MQError):
            here(command)
    for step in plan(read_text(yaml_text(here.rows(), system=True)), there.rows()):
        there(step.call)
    assert there.rows() == here.rows()


def test_where_the_default_object_says_otherwise_the_file_says_it_all():
    here, there = InProcess(), InProcess()
    here(Define(object_type="QLOCAL", name="A"))
    default = Alter(object_type="QLOCAL", name="SYSTEM.DEFAULT.LOCAL.QUEUE", attributes={"max_q_depth": 9})
    here(default)
    text = yaml_text(here.rows())
    there(default)
    for step in plan(read_text(text), there.rows()):
        there(step.call)
    assert there.rows() == here.rows()


def test_a_file_says_what_differs_from_the_default_or_with_everything_all():
    qm = InProcess()
    qm(Define(object_type="QLOCAL", name="A", attributes={"trigger_control": "on", "description": "a day"}))
    rows = qm.rows("queue")
    assert yaml_text(rows) == '- qlocal: A\n  description: "a day"\n  trigger_control: on\n'
    assert len(yaml12.load(yaml_text(rows, everything=True)).value[0]) > 20


def test_sparks_attributes_are_a_group():
    qm = InProcess()
    attributes = {"spark_conf": "a.b=1", "spark_arguments": "--queue '{queue}'", "spark_master": "local[2]"}
    qm(Define(object_type="PROCESS", name="P", attributes=attributes))
    (item,) = yaml12.load(yaml_text(qm.rows("PROCESS"))).value
    assert item["spark"] == {"master": "local[2]", "conf": {"a.b": "1"}, "arguments": ["--queue", "{queue}"]}


def test_every_attribute_of_spark_is_exported_by_its_key_and_loads_back():
    attributes = {
        "spark_start": "connect",
        "spark_isolation": "process",
        "spark_short": "yes",
        "spark_master": "yarn",
        "spark_deploy_mode": "cluster",
        "spark_name": "n",
        "spark_class": "A",
        "spark_conf": "a=1",
        "spark_py_files": "a.py,b.py",
        "spark_files": "f",
        "spark_archives": "z#z",
        "spark_jars": "j",
        "spark_packages": "g:a:1",
        "spark_driver_memory": "2g",
        "spark_driver_cores": 2,
        "spark_executor_memory": "1g",
        "spark_executor_cores": 3,
        "spark_num_executors": 4,
        "spark_principal": "p",
        "spark_keytab": "k",
        "spark_environment": "A='x y'",
        "spark_arguments": "x",
    }
    qm = InProcess()
    qm(Define(object_type="PROCESS", name="P", attributes=attributes | {"spark_environment": "'A=x y'"}))
    text = yaml_text(qm.rows("PROCESS"))
    (item,) = yaml12.load(text).value
    assert set(item) == {"process", "working_directory", "tmc_argument", "spark"}
    assert {f"spark_{key}" for key in item["spark"]} == set(attributes)
    assert (item["spark"]["class"], item["spark"]["environment"]) == ("A", {"A": "x y"})
    there = InProcess()
    for step in plan(read_text(text), there.rows()):
        there(step.call)
    assert there.rows("PROCESS") == qm.rows("PROCESS")


def test_what_a_group_could_not_say_to_the_letter_stays_flat():
    qm = InProcess()
    qm(Define(object_type="PROCESS", name="P", attributes={"spark_arguments": "a   b"}))
    (item,) = yaml12.load(yaml_text(qm.rows("PROCESS"))).value
    assert item["spark_arguments"] == "a   b"


def test_a_working_directory_goes_out_as_it_is_meant_and_loads_back_equal_from_anywhere(tmp_path):
    here = InProcess()
    for step in plan(
        read_text("- process: A\n  working_directory: jobs\n- process: B\n", directory=tmp_path), here.rows()
    ):
        here(step.call)
    here(Define(object_type="PROCESS", name="C"))
    text = yaml_text(here.rows())
    assert [row.get("working_directory") for row in here.rows("PROCESS")][:3] == [f"{tmp_path}/jobs", str(tmp_path), ""]
    assert plan(read_text(text, directory=tmp_path / "other"), here.rows()) == []


def test_the_environment_of_a_program_goes_out_beside_its_other_attributes_and_loads_back_equal():
    here = InProcess()
    here(Define(object_type="PROCESS", name="P", attributes={"spark_environment": "A=b 'C=d e'"}))
    text = yaml_text(here.rows("PROCESS"))
    assert yaml12.load(text).value[0]["environment"] == {"A": "b", "C": "d e"}
    assert plan(read_text(text), here.rows()) == []


def test_system_objects_are_written_when_asked_for():
    rows = InProcess().rows("queue")
    assert yaml_text(rows) == "[]\n"
    assert "SYSTEM.DEAD.LETTER.QUEUE" in yaml_text(rows, system=True)

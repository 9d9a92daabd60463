from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.launch.conftest import make_order
from trigmon.launch.arguments import OF_ONE_RUN, environment, environment_words
from trigmon.launch.launch_plan import LaunchError
from trigmon.launch.unix import ProcessLauncher, arguments
from trigmon.mq.descriptors import unpack_tmc2
from trigmon.mq.enums import ApplType, YesNo
from trigmon.rules.runs.check_program import faults

TEXT = st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=30)


def test_a_program_gets_its_words_then_the_mqtmc2_then_envrdatas_words(order):
    argv = arguments(order("load.sh --fast 'two words'", env_data="tail 'of it'", trigger_data="t", user_data="u"))
    assert argv[:3] == ["load.sh", "--fast", "two words"]
    assert argv[4:] == ["tail", "of it"]
    assert len(argv[3].encode()) == 732
    trigger, q_mgr_name = unpack_tmc2(argv[3])
    assert (trigger.q_name, trigger.trigger_data, trigger.user_data, q_mgr_name) == ("ORDERS", "t", "u", "QM1")


def test_a_placeholder_takes_the_place_of_the_mqtmc2(order):
    argv = arguments(order("load --queue {queue} --run={run}", env_data="{trigdata}", trigger_data="a b"))
    assert argv == ["load", "--queue", "ORDERS", "--run=0123456789abcdef", "a b"]


def test_braces_that_are_no_placeholder_stay_as_they_are(order):
    argv = arguments(order("awk '{print $1}' {userdata}", user_data="f"))
    assert argv == ["awk", "{print $1}", "f"]


@pytest.mark.parametrize("expected", ["&", "a b &", "a b&"])
def test_a_trailing_ampersand_of_envrdata_is_ignored(expected):
    assert environment_words(expected) == ["a", "b"][: len(expected) // 2]


def test_what_a_shell_would_obey_is_only_text(order):
    argv = arguments(order("echo {trigdata}", trigger_data="$(reboot); `reboot` | reboot > /etc/passwd"))
    assert argv == ["echo", "$(reboot); `reboot` | reboot > /etc/passwd"]


def test_a_filling_is_not_filled_again(order):
    assert arguments(order("echo {trigdata}", trigger_data="{userdata}", user_data="x")) == ["echo", "{userdata}"]


@pytest.mark.parametrize("word", ["{trigdata}", "{userdata}{trigdata}"])
def test_trigger_data_may_not_begin_an_option(order, word):
    with pytest.raises(LaunchError, match="may not begin an option"):
        arguments(order(f"load {word}", trigger_data="--exec=reboot"))


def test_trigger_data_may_follow_text_of_the_definition(order):
    assert arguments(order("load --since={trigdata} -n{trigdata}", trigger_data="-1")) == ["load", "--since=-1", "-n-1"]


def test_the_program_itself_may_not_come_from_a_placeholder(order):
    with pytest.raises(LaunchError, match="may not be a placeholder"):
        arguments(order("{trigdata}", trigger_data="/bin/rm"))


@pytest.mark.parametrize("field", ["trigger_data", "user_data", "env_data", "q_name", "appl_id"])
@pytest.mark.parametrize("character", ["\0", "\n", "\x1b", "\x7f", "\x9b"])
def test_a_control_character_anywhere_is_refused(order, field, character):
    with pytest.raises(LaunchError, match=f"{field} holds a control character"):
        arguments(order(**{field: f"a{character}b"}))


@pytest.mark.parametrize(("appl_id", "why"), [("", "blank"), ("load 'x", "cannot be split")])
def test_an_applicid_without_words_is_refused(order, appl_id, why):
    with pytest.raises(LaunchError, match=why):
        arguments(order(appl_id))


def test_the_environment_tells_what_the_program_was_started_for(order):
    reported = environment(order("p", trigger_data="t", user_data="u", env_data="e"))
    assert unpack_tmc2(reported.pop("TRIGMON_TMC"))[1] == "QM1"
    assert reported == {
        "TRIGMON_QMGR": "QM1",
        "TRIGMON_QNAME": "ORDERS",
        "TRIGMON_PROCESS": "ORDERS.LOAD",
        "TRIGMON_TRIGDATA": "t",
        "TRIGMON_USERDATA": "u",
        "TRIGMON_ENVDATA": "e",
        "TRIGMON_OCCASION": "1",
        "TRIGMON_RUN": "0123456789abcdef",
    }


@given(trigger_data=TEXT, user_data=TEXT, q_name=TEXT)
def test_whatever_comes_from_outside_fills_exactly_one_element(order, trigger_data, user_data, q_name):
    words = "load --q={queue} x{trigdata}y {userdata}"
    try:
        argv = arguments(order(words, trigger_data=trigger_data, user_data=user_data, q_name=q_name))
    except LaunchError:
        assert user_data.startswith("-")
    else:
        assert argv == ["load", f"--q={q_name}", f"x{trigger_data}y", user_data]


@given(st.text("a \\'\"{}trigdaqueuen&-=", max_size=16), st.text("a '{}run&", max_size=8))
def test_what_may_be_defined_can_be_started_and_nothing_else(appl_id: str, env_data: str):
    made = make_order(appl_id, env_data=env_data, trigger_data="t", user_data="u")
    if not list(faults(made.process)) and appl_id.strip():
        assert arguments(made)[0]
    else:
        with pytest.raises(LaunchError):
            arguments(made)


SHELL = {"shell": YesNo.YES, "tmc_argument": YesNo.NO}


@given(trigger_data=TEXT, user_data=TEXT)
def test_a_shell_gets_the_text_of_the_definition_and_each_value_as_one_parameter(trigger_data, user_data):
    made = make_order('printf "%s\\n"', trigger_data=trigger_data, user_data=user_data, env_data='"$2" "$3" &', **SHELL)
    argv = arguments(made)
    trigger = made.trigger
    assert argv[:4] == ["/bin/sh", "-c", 'printf "%s\\n" "$2" "$3"', "sh"]
    assert argv[4:] == [trigger.q_name, trigger.trigger_data, trigger.user_data]
    printed = subprocess.run(argv, capture_output=True, check=True).stdout
    assert printed == f"{trigger.trigger_data}\n{trigger.user_data}\n".encode()


def test_the_mqtmc2_is_the_fourth_parameter_of_a_shell_behind_the_program():
    argv = arguments(make_order("load", shell=YesNo.YES, env_data="> x"))
    assert argv[2] == 'load "$4" > x'
    assert unpack_tmc2(argv[7])


def test_a_trigger_message_of_another_queue_manager_brings_no_value_into_the_text_of_a_shell():
    with pytest.raises(LaunchError, match="a text without placeholders"):
        arguments(make_order("eval {trigdata}", **SHELL))


def test_a_virtual_environment_that_is_not_there_is_no_reason_for_another_python(order, tmp_path):
    with pytest.raises(LaunchError, match="is no virtual environment: there is no directory"):
        ProcessLauncher().plan(order("python x.py", virtualenv=str(tmp_path / "gone")))
    (tmp_path / "bin").mkdir()
    plan = ProcessLauncher().plan(order("cat", virtualenv=str(tmp_path), spark_environment="PATH=/bin A=b"))
    assert plan.environment["PATH"] == f"{tmp_path}/bin:/bin"
    assert (plan.environment["VIRTUAL_ENV"], plan.environment["A"]) == (str(tmp_path), "b")


def test_a_python_program_may_be_forked_from_a_warm_interpreter(order, tmp_path):
    warm = {"warm_interpreter": YesNo.YES, "warm_modules": "json a.b", "tmc_argument": YesNo.NO}
    python = sys.executable
    plan = ProcessLauncher().plan(order(f"{python} -u x.py --of {{queue}}", env_data="more", **warm))
    assert plan.argv == [python, "-u", "x.py", "--of", "ORDERS", "more"]
    assert (plan.interpreter, plan.fork) == (plan.argv[:2], plan.argv[2:])
    assert plan.modules[-2:] == ["json", "a.b"]
    # A trigger message of another queue manager may bring any program.
    assert not ProcessLauncher().plan(order("/bin/true x", **warm)).fork


def test_the_variables_that_each_run_has_for_itself_are_known(order):
    assert set(OF_ONE_RUN) == {*environment(order()), "TRACEPARENT", "CREDENTIALS_DIRECTORY"}
    assert environment(replace(order(), traceparent="00-a-b-01"))["TRACEPARENT"] == "00-a-b-01"


def test_a_spark_job_has_no_virtual_environment_and_a_relative_one_is_refused():
    spark = make_order("job.py", appl_type=ApplType.SPARK, virtualenv="/srv/venv").process
    assert [name for name, _ in faults(spark)] == ["virtualenv"]
    assert [name for name, _ in faults(make_order(virtualenv="venv").process)] == ["virtualenv"]

"""What only a shell understands is named, and a shell gets the definition's text and nothing from outside in it."""

import pytest

from trigmon.mq.attributes import Process
from trigmon.mq.enums import ApplType, YesNo
from trigmon.rules.runs.check_program import faults
from trigmon.rules.runs.process_warnings import warnings
from trigmon.rules.runs.shell_text import for_a_shell, needs_shell, script, without_ampersand


def process(appl_id, env_data="", **fields):
    return Process(name="P", appl_type=ApplType.UNIX, appl_id=appl_id, env_data=env_data, **fields)


@pytest.mark.parametrize(
    ("appl_id", "env_data", "found"),
    [
        ("prog", ">> /var/log/x 2>&1 &", ">>"),
        ("cd /opt/app; ./run.sh $HOME", "", ";"),
        ("PATH=/x:$PATH prog", "", "PATH="),
        ("a | b", "", "|"),
        ("a && b", "", "&&"),
        ("a || b", "", "||"),
        ("a < b", "", "<"),
        ("prog $HOME/x", "", "$HOME/x"),
        ("prog ${HOME}", "", "${HOME}"),
        ('prog "$HOME"', "", "$HOME"),
        ("prog $(date)", "", "$(date)"),
        ('prog "`date`"', "", "`"),
        ("ls *.csv", "", "*.csv"),
        ("ls a?", "", "a?"),
        ("ls", "a? b", "a?"),
    ],
)
def test_what_only_a_shell_understands_is_named(appl_id, env_data, found):
    assert needs_shell(process(appl_id, env_data)) == found
    assert [*warnings("P", {"appl_type": "unix", "appl_id": appl_id, "env_data": env_data})] == [
        f"PROCESS P needs a shell for {found}, and no shell is run: SHELL(YES) runs one"
    ]
    assert needs_shell(process(appl_id, env_data, shell=YesNo.YES)) == ""


@pytest.mark.parametrize(
    "appl_id",
    [
        "load {queue} --run={run}",
        "sh -c 'load \"$1\" > /tmp/x | b; c && d *' sh {trigdata}",
        "awk '{print $1}' {userdata}",
        "grep a\\|b a\\;b \\$HOME",
        'say "a > b; c | d * ?"',
        "curl https://example.org/?day=1",
        "price 5$ x=y --day=1",
        "run &",
        "",
    ],
)
def test_a_command_line_that_means_the_same_without_a_shell_is_not_named(appl_id):
    assert needs_shell(process(appl_id)) == ""


def test_a_spark_job_needs_no_shell():
    assert needs_shell(Process(name="P", appl_type=ApplType.SPARK, appl_id="job.py > x")) == ""


@pytest.mark.parametrize(
    ("appl_id", "env_data", "tmc", "text"),
    [
        ("prog", ">> x 2>&1 &", YesNo.YES, 'prog "$4" >> x 2>&1'),
        ("prog", ">> x 2>&1 &", YesNo.NO, "prog >> x 2>&1"),
        ("a | b &", "", YesNo.NO, "a | b"),
        ("a &&", "b", YesNo.NO, "a && b"),
    ],
)
def test_the_text_is_that_of_the_definition_with_the_mqtmc2_where_mq_puts_it(appl_id, env_data, tmc, text):
    assert script(process(appl_id, env_data, shell=YesNo.YES, tmc_argument=tmc)) == text


def test_the_ampersand_at_the_end_is_no_part_of_the_text_and_two_are():
    assert [without_ampersand(text) for text in ("a & ", "a&", "&", "a &&", "a & b")] == ["a", "a", "", "a &&", "a & b"]


@pytest.mark.parametrize("text", ["load {trigdata} > x", "eval '{userdata}'", "sh -c {tmc}", 'x "{queue}"'])
@pytest.mark.parametrize("name", ["appl_id", "env_data"])
def test_no_value_from_outside_becomes_a_part_of_the_text(name, text):
    given = process(**({"appl_id": "true"} | {name: text}), shell=YesNo.YES, tmc_argument=YesNo.NO)
    ((wrong, wanted),) = faults(given)
    assert wrong == name
    shown = for_a_shell(text)
    assert wanted == f"a text without placeholders: a shell has the values as positional parameters, as in {shown!r}"


@pytest.mark.parametrize("appl_id", ["bash -c", "exec sh -c", "a; bash -c", "python -c"])
def test_the_mqtmc2_is_no_script_of_a_shell_behind_the_text(appl_id):
    assert [name for name, _ in faults(process(appl_id, shell=YesNo.YES, tmc_argument=YesNo.YES))] == ["appl_id"]
    assert not [*faults(process(appl_id, shell=YesNo.YES, tmc_argument=YesNo.NO))]


def test_placeholders_are_proposed_as_the_parameters_that_hold_their_values():
    text = for_a_shell("load {queue} {trigdata} {userdata} {tmc} {run}")
    assert text == 'load "$1" "$2" "$3" "$4" "$TRIGMON_RUN"'

"""Whatever bytes a trigger message holds, a program gets its definition's words, one for one, and no shell sees them.

TRIGDATA, USERDATA, ENVRDATA and the queue's name come as raw bytes of an MQTM, through the real reading, believing,
planning and argument building; a sample goes to a real keeper and comes back from a real program.
"""

from __future__ import annotations

import json
import os
import shlex
import struct
import sys
import tempfile
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.launch.keeper_machine import KeeperMachine
from trigmon.launch.launch_plan import LaunchError, Order
from trigmon.launch.spark.cold.command import submitted
from trigmon.launch.unix import ProcessLauncher, arguments, environment
from trigmon.monitor.trigger_plan import DeadLetter, believed, process_for
from trigmon.mq.attributes import Process
from trigmon.mq.descriptors import MessageDescriptor, TriggerMessage, control_character, pack_tmc2, unpack_tm
from trigmon.mq.enums import ApplType

NASTY = [
    *("-", "--", "--exec=reboot", "-rf", "$(touch made)", "`touch made`", "; touch made", "| touch made", "> made"),
    *("&& touch made", "$HOME", "${IFS}", "*", "~", "'", '"', "\\", "'; touch made; '", "{queue}", "{trigdata}"),
    *("{", "}", "%s", "\n", "\0", "\x1b[2J", "\x9b", "\t", " ", "é", "\u202e", "=", "@file", "#", "!x", "a\\"),
]
# Bytes of any kind, and texts that some shell, template or option parser would take for more than text.
RAW = st.one_of(
    st.sampled_from(NASTY).map(str.encode),
    st.binary(max_size=24),
    st.lists(st.sampled_from(NASTY), max_size=4).map(lambda parts: "".join(parts).encode()),
    st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=12).map(str.encode),
)
FILLED = ["{queue}", "{trigdata}", "{userdata}", "{run}", "{tmc}", "--q={queue}", "-n{trigdata}", "--k=v={trigdata}"]
MIXED = ["a{trigdata}{userdata}", "a={userdata}b", "--fixed", "-x", "$HOME", "two words", "it's", "*"]
WORDS = st.lists(st.sampled_from(FILLED + MIXED), min_size=1, max_size=6)


def message(appl_id="load", *, q_name=b"Q", trigger_data=b"", env_data=b"", user_data=b""):
    """The trigger message in these bytes, as a monitor reads it."""
    fields = (b"TM  ", 1, q_name, b"P", trigger_data, ApplType.UNIX, appl_id.encode(), env_data, user_data)
    return unpack_tm(struct.pack("=4si48s48s64si256s128s128s", *fields))


def order(trigger, **definition):
    process = Process(name="P", appl_type=trigger.appl_type, **definition)
    return Order(run_id="0123456789abcdef", q_mgr_name="QM1", trigger=trigger, process=process)


def filled(word, trigger):
    """Returns what a word must become, by another algorithm: from the left, without reading what it inserted."""
    values = {
        "{queue}": trigger.q_name,
        "{trigdata}": trigger.trigger_data,
        "{userdata}": trigger.user_data,
        "{run}": "0123456789abcdef",
        "{tmc}": pack_tmc2(trigger, "QM1"),
    }
    done = ""
    while word:
        name = next((name for name in values if word.startswith(name)), word[0])
        done, word = done + values.get(name, name), word[len(name) :]
    return done


def check(words, argv, trigger):
    """One element a word, each with its own filling, no option that no word began, nothing a terminal would obey."""
    assert argv == [filled(word, trigger) for word in words]
    for word, element in zip(words, argv, strict=True):
        assert element.startswith("-") == word.startswith("-")
        if word.startswith("--"):
            assert element.partition("=")[0] == word.partition("=")[0]
        assert not any(unicodedata.category(character) == "Cc" for character in element)
        assert b"\0" not in os.fsencode(element)


def is_refusable(words, trigger):
    """Whether refusing was right: something in it is no text, or would have begun an option."""
    begins = any(filled(word, trigger).startswith("-") and not word.startswith("-") for word in words)
    return bool(control_character(trigger)) or begins


@settings(max_examples=400)
@given(words=WORDS, q_name=RAW, trigger_data=RAW, user_data=RAW)
def test_every_word_becomes_one_element_or_the_launch_is_refused(words, q_name, trigger_data, user_data):
    text = shlex.join(["load", *words])
    trigger = message(text, q_name=q_name, trigger_data=trigger_data, user_data=user_data)
    if trigger.appl_id != text.encode()[:256].decode(errors="replace") or len(text.encode()) > 256:
        return  # longer than the field
    whole = ["load", *words]
    whole = whole if any("{" in word for word in words) else [*whole, "{tmc}"]
    try:
        argv = arguments(order(trigger))
    except LaunchError:
        assert is_refusable(whole, trigger)
    else:
        check(whole, argv, trigger)


@settings(max_examples=200)
@given(words=WORDS, q_name=RAW, trigger_data=RAW, user_data=RAW)
def test_a_spark_jobs_arguments_are_filled_alike(words, q_name, trigger_data, user_data):
    trigger = message("job.py", q_name=q_name, trigger_data=trigger_data, user_data=user_data)
    try:
        argv = submitted(order(trigger, spark_arguments=shlex.join(words), spark_conf="a=b"))
    except LaunchError:
        assert is_refusable(words, trigger)
    else:
        assert argv[:3] == ["--conf", "a=b", "job.py"]
        check(words, argv[3:], trigger)


@settings(max_examples=200)
@given(env_data=RAW, q_name=RAW, trigger_data=RAW, user_data=RAW)
def test_a_stranger_chooses_a_queue_and_its_data_and_no_word_of_the_program(env_data, q_name, trigger_data, user_data):
    """A trigger message that the queue manager did not write: its ENVRDATA, USERDATA and program count for nothing."""
    raw = {"q_name": q_name, "trigger_data": trigger_data, "user_data": user_data, "env_data": env_data}
    definition = {
        "appl_type": "UNIX",
        "appl_id": "load {queue} --data={trigdata}",
        "env_data": "tail",
        "user_data": "ours",
        "run_as": "svc",
    }
    sent = message("/bin/rm -rf /", **raw)
    reported = believed(MessageDescriptor(), sent, definition, {"name": sent.q_name, "process_name": sent.process_name})
    assert not isinstance(reported, DeadLetter)
    try:
        argv = arguments(order(reported))
    except LaunchError:
        assert control_character(reported) or reported.q_name.startswith("-")
    else:
        assert argv == ["load", reported.q_name, f"--data={reported.trigger_data}", "tail"]
        assert process_for(reported, definition).run_as == "svc"


@settings(max_examples=200)
@given(env_data=RAW)
def test_words_behind_the_program_never_change_the_words_before_them(env_data):
    trigger = message("load --now", env_data=env_data)
    try:
        argv = arguments(order(trigger))
    except LaunchError:
        return
    assert argv[:2] == ["load", "--now"]
    assert not any(unicodedata.category(character) == "Cc" for word in argv for character in word)


ECHO = """#!{python} -SE
import json, os, sys
ours = {{name: value for name, value in os.environ.items() if name.startswith("TRIGMON_")}}
sys.stdout.write(json.dumps([sys.argv[1:], ours]))
"""


@pytest.fixture(scope="module")
def echoing():
    """A keeper, and a directory with the one program in it."""
    with tempfile.TemporaryDirectory() as place:
        machine = KeeperMachine(Path(place))
        work = Path(place) / "work"
        work.mkdir()
        (work / "echo").write_text(ECHO.format(python=sys.executable))
        (work / "echo").chmod(0o755)
        yield machine, work
        machine.end()


numbers = iter(range(1, 1 << 30))


@settings(max_examples=60)
@given(words=WORDS, q_name=RAW, trigger_data=RAW, user_data=RAW, is_limited=st.booleans())
def test_a_real_program_gets_them_byte_for_byte(echoing, words, q_name, trigger_data, user_data, is_limited):
    """The ordinary start and the fork alike: arguments and variables arrive as they were built, and nothing else."""
    machine, work = echoing
    trigger = message(shlex.join(["echo", *words]), q_name=q_name, trigger_data=trigger_data, user_data=user_data)
    limits = {"open_files_limit": 64} if is_limited else {}
    try:
        plan = ProcessLauncher().plan(order(trigger, working_directory=str(work), **limits))
    except LaunchError:
        return
    run_id = f"r{next(numbers)}"
    machine.keeper.start(run_id, plan, environment(plan), machine.run(run_id), time_limit_s=0, grace_s=1)
    assert machine.wait_for("ended", run_id)["status"] == 0, machine.output(run_id, "stderr")
    argv, reported = json.loads(machine.output(run_id))
    assert argv == plan.argv[1:]
    assert {name: reported[name] for name in plan.environment} == plan.environment
    assert [entry.name for entry in work.iterdir()] == ["echo"]
    machine.heard.clear()


@pytest.mark.parametrize("text", NASTY)
def test_each_text_a_shell_would_obey_arrives_as_text_or_is_refused(echoing, text):
    machine, work = echoing
    trigger = TriggerMessage(q_name="Q", appl_type=int(ApplType.UNIX), appl_id="echo {trigdata}", trigger_data=text)
    try:
        plan = ProcessLauncher().plan(order(trigger, working_directory=str(work)))
    except LaunchError:
        assert text.startswith("-") or control_character(trigger)
        return
    run_id = f"r{next(numbers)}"
    machine.keeper.start(run_id, plan, environment(plan), machine.run(run_id), time_limit_s=0, grace_s=1)
    machine.wait_for("ended", run_id)
    assert json.loads(machine.output(run_id))[0] == [text]
    assert [entry.name for entry in work.iterdir()] == ["echo"]

"""Whole dumps, samples of our own in the shape of MQ's tool: all of it is taken, or listed with its line and reason."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.in_process import InProcess
from trigmon.mq.attributes import ATTRIBUTES
from trigmon.mq.calls import Alter, Define, SetAuthority
from trigmon.mq.enums import ObjectType
from trigmon.mqsc.commands import Command, read_script
from trigmon.mqsc.script import run

DUMPS = Path(__file__).parent / "dumps"
FILES = sorted(path.name for path in DUMPS.glob("*.mqsc"))
_CONTROL = ("REPLACE", "FORCE")
_HEAD = re.compile(r"(DEFINE|ALTER) [A-Z]+(\('[^']*'\))?")
_PARAMETER = re.compile(r"[A-Z]+(?:\((?:'(?:[^']|'')*'|[^()'])*\))?")


def text_of(file: str) -> str:
    return (DUMPS / file).read_text(encoding="utf-8")


def load(file: str) -> tuple[InProcess, int, list[str]]:
    qm = InProcess()
    said: list[str] = []
    code = run(text_of(file).splitlines(keepends=True), qm, said.append, "QM1")
    return qm, code, said


def row(qm: InProcess, name: str, object_type: str = "queue") -> dict[str, Any]:
    return next(r for r in qm.rows(object_type) if r["name"] == name)


def end_of(said: list[str]) -> list[str]:
    """The list of what was skipped, as it stands at the end."""
    begin = next(at for at, line in enumerate(said) if line.startswith("Skipped, since"))
    return said[begin : said.index("", begin)]


def test_there_are_dumps():
    assert FILES == ["by_hand.mqsc", "office_1line.mqsc", "plant1.mqsc"]


@pytest.mark.parametrize("file", FILES)
def test_a_whole_dump_loads_without_an_error(file: str):
    _, code, said = load(file)
    assert code == 0
    assert not [line for line in said if re.match(r"(AMQ|CSQ)\d{4}[EW]", line)]
    assert said[-2:] == ["No commands have a syntax error.", "All valid MQSC commands were processed."]


@pytest.mark.parametrize("file", ["plant1.mqsc", "office_1line.mqsc"])
def test_every_parameter_of_a_dump_is_taken_or_skipped_with_its_line(file: str):
    text = text_of(file)
    lines = text.split("\n")
    commands = {c.line: c for c in read_script(text)}
    ends = [*sorted(commands)[1:], len(lines) + 1]
    seen = 0
    for (line, command), end in zip(sorted(commands.items()), ends, strict=True):
        if not command.calls:
            (skipped,) = command.skipped
            assert (skipped.line, skipped.parameter) == (line, "")
            assert skipped.what.split("(")[0].split()[0] in lines[line - 1]
            continue
        if isinstance(command.calls[0], SetAuthority):
            seen += 1
            continue
        taken = _words_taken(command)
        skipped_words = {(s.line, s.parameter) for s in command.skipped}
        for number in range(line, end):
            for said in _parameters(lines[number - 1]):
                word = said.split("(")[0]
                if word not in _CONTROL:
                    assert (word in taken) != ((number, said) in skipped_words), (number, said)
                    seen += 1
    assert seen > (500 if file == "plant1.mqsc" else 10)


def _parameters(line: str) -> list[str]:
    """The parameters of one line of a dump, read by a rule of this test's own."""
    return [] if line.startswith("*") else _PARAMETER.findall(_HEAD.sub("", line))


def _words_taken(command: Command) -> set[str]:
    """MQSC's words of the attributes that a command sends."""
    (call,) = command.calls
    assert isinstance(call, Define | Alter)
    table = ATTRIBUTES[ObjectType[call.object_type]]
    words = {table[name].mqsc for name in call.attributes}
    return words | {f for name in call.attributes for f in (table[name].flags or ())}


def test_what_is_here_is_what_the_dump_says():
    qm, _, _ = load("plant1.mqsc")
    orders = row(qm, "PLANT.ORDERS.IN")
    assert orders["description"] == "Orders, one a message; the mixer's own"
    assert orders["trigger_control"] == "on"
    assert orders["trigger_data"] == "recipe=std line=1"
    assert (orders["backout_threshold"], orders["backout_requeue_q_name"]) == (3, "PLANT.ORDERS.BO")
    batch = row(qm, "PLANT.BATCH")
    assert (batch["trigger_depth"], batch["cap_expiry"], orders["cap_expiry"]) == (50, 36_000, "nolimit")
    lower = row(qm, "plant.lower.case")
    assert (lower["shareability"], lower["msg_delivery_sequence"]) == ("not_shareable", "fifo")
    assert row(qm, "ORDERS")["base_q_name"] == "PLANT.ORDERS.IN"
    remote = row(qm, "OFFICE.INVOICES")
    assert (remote["remote_q_mgr_name"], remote["xmit_q_name"]) == ("OFFICE", "PLANT.OFFICE.XMITQ")
    assert row(qm, "PLANT.REPLY.MODEL")["definition_type"] == "permanent_dynamic"
    assert row(qm, "PLANT.MIX", "PROCESS")["user_data"] == "mode='fast'"
    assert row(qm, "PLANT.NOTES", "PROCESS")["appl_type"] == "notes_agent"
    assert row(qm, "PLANT.OWN", "PROCESS")["appl_type"] == 70001
    (manager,) = qm.rows("QMGR")
    assert (manager["trigger_interval"], manager["max_uncommitted_msgs"]) == (60_000, 20_000)


def test_what_is_not_here_is_listed_at_the_end_and_where_it_stood():
    _, _, said = load("plant1.mqsc")
    end = end_of(said)
    assert re.fullmatch(r"Skipped, since they have no meaning here: 11 commands and \d+ attributes\.", end[0])
    text = text_of("plant1.mqsc").split("\n")
    for typed, told in (
        ("   CLUSTER('PLANTS') +", "QLOCAL(PLANT.ORDERS.IN) CLUSTER('PLANTS'): there are no clusters here"),
        (
            "DEFINE LISTENER('PLANT1.TCP') +",
            "DEFINE LISTENER('PLANT1.TCP'): where the queue manager listens is in its settings",
        ),
        (
            "DEFINE QALIAS('PLANT.NEWS') +",
            "DEFINE QALIAS(PLANT.NEWS) TARGTYPE(TOPIC): there is no publish and subscribe here",
        ),
    ):
        wanted = f"line {text.index(typed) + 1}: {told}"
        assert f"   {wanted}" in end
        assert f"Skipped, {wanted}" in said
    for kind in ("CHANNEL", "AUTHINFO", "SERVICE", "TOPIC", "SUB", "COMMINFO"):
        assert any(f": DEFINE {kind}(" in line for line in end)
    assert any(": SET CHLAUTH('SYSTEM.*'): there are no channels here" in line for line in end)


def test_the_authority_records_of_a_dump_are_set():
    qm, _, _ = load("plant1.mqsc")
    given = {row["name"]: row["authorities"] for row in qm.rows("AUTHREC")}
    assert given == {"queue PLANT.** user mixer": "put,get,browse,inq,set", "qmgr SELF group plantops": "inq,dsp"}


def test_what_stands_at_mqs_default_is_one_line_for_each_object():
    _, _, said = load("plant1.mqsc")
    (line,) = [line for line in end_of(said) if "QLOCAL(PLANT.ORDERS.BO)" in line]
    assert re.match(r"   lines \d+ to \d+: QLOCAL\(PLANT\.ORDERS\.BO\) at MQ's default, without meaning here: ", line)
    assert "ACCTQ CLCHNAME CLUSNL CLUSTER" in line


def test_a_script_as_people_write_it_is_read():
    qm, _, said = load("by_hand.mqsc")
    orders = row(qm, "SHOP.ORDERS")
    assert orders["description"] == "Orders of the day, Fred's"
    assert orders["process_name"] == "SHOP.ORDERS.PROC"
    retry, more = row(qm, "shop.retry"), row(qm, "SHOP.MORE")
    assert (retry["trigger_control"], retry["max_q_depth"], retry["process_name"]) == ("off", 10, "SHOP.ORDERS.PROC")
    assert {**orders, "name": ""} == {**more, "name": ""}
    assert "   CURDEPTH(0)                             TRIGTYPE(FIRST)" in said
    assert "Skipped, line 19: QLOCAL(SHOP*) cluster: there are no clusters here" in said
    assert said[-3] == "11 MQSC commands read."


def test_a_dump_loads_twice_with_the_same_end():
    qm = InProcess()
    for _ in range(2):
        run(text_of("plant1.mqsc").splitlines(), qm, lambda line: None, "QM1")
    assert qm.rows() == load("plant1.mqsc")[0].rows()

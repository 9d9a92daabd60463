"""A queue elsewhere, seen by MQINQ and PCF through IBM's package: each condition, and what is not seen."""

# ruff: noqa: F401, F811 - fixtures are imported
from __future__ import annotations

import json

import pytest

from tests.bridge.conftest import NEEDS_IBMMQ
from tests.bridge.queues_elsewhere import (
    INITIATION,
    PROCESS,
    QUEUE,
    SETTINGS,
    THERE,
    Elsewhere,
    by_name,
    library_directory,
    pair,
)
from tests.cli.conftest import objects, run_cli
from tests.daemons import define
from trigmon.bridge.connection import RemoteConnection
from trigmon.bridge.remote_facts import look_at_queue
from trigmon.bridge.remote_verdict import explain_seen
from trigmon.bridge.seen_queue import Fact
from trigmon.mq.calls import Delete
from trigmon.mq.errors import QWrongType, UnknownObjectName
from trigmon.mq.explanation import NOT_SEEN
from trigmon.setting_sections import BridgeSettings

pytestmark = NEEDS_IBMMQ
COMMANDS = "SYSTEM.ADMIN.COMMAND.QUEUE"


@pytest.fixture
def there(by_name):
    """Yields the objects of a test at the queue manager that plays the real MQ."""
    one = Elsewhere(by_name[1])
    yield one
    one.close()
    with by_name[1].connect() as qm:
        for kind, name in (("QLOCAL", QUEUE), ("PROCESS", PROCESS), ("QLOCAL", INITIATION)):
            try:
                qm.call(Delete(object_type=kind, name=name, purge=True))
            except UnknownObjectName:
                continue


@pytest.fixture
def connection(there):
    """Yields the connection of a bridge to it."""
    one = RemoteConnection("REAL", BridgeSettings(queue_manager=THERE, initiation_queues=[INITIATION]))
    yield one
    one.drop()


@pytest.fixture
def trigmon(pair, tmp_path):
    """Returns the command line of this side, whose settings have the bridge."""
    config = tmp_path / "trigmon.yaml"
    config.write_text(SETTINGS)
    ours = {name: value for name, value in pair[0].env.items() if name.startswith("TRIGMON_")}
    return lambda *arguments: run_cli(*arguments, "--config", str(config), env=ours)


def explained(connection, priority=-1, q_name=QUEUE):
    return explain_seen(look_at_queue(connection, q_name, timeout_s=2.0), priority, 1)


def answer(verdict, number):
    return next(each for each in verdict.conditions if each.number == number)


def test_all_conditions_hold_and_nothing_is_unseen(there, connection):
    there.begin()
    verdict = explained(connection)
    assert verdict.fires, verdict
    assert verdict.fires == there.qm.explain(QUEUE).fires
    assert verdict.values["unseen"] == {}
    assert [handle["pid"] > 0 for handle in verdict.values["monitors"]] == [True]


BROKEN = {
    "2": (lambda there: there.alter(QUEUE, trigger_msg_priority=3), 2),
    "3": (lambda there: there.alter(QUEUE, trigger_type="depth", trigger_depth=5), -1),
    "4": (lambda there: there.stack.enter_context(there.qm.open(QUEUE, "input_shared")), -1),
    "5": (lambda there: there.alter(QUEUE, usage="transmission", inhibit_get="inhibited"), -1),
    "6": (lambda there: there.qm.call(Delete(object_type="PROCESS", name=PROCESS)), -1),
    "7": (lambda there: there.alter(INITIATION, inhibit_put="inhibited"), -1),
    "8": (lambda there: there.monitor.close(), -1),
    "9": (lambda there: there.alter(QUEUE, trigger_control="off"), -1),
    "10": (lambda there: there.alter(QUEUE, trigger_type="none"), -1),
    "14": (lambda there: there.alter(QUEUE, msg_delivery_sequence="fifo", trigger_msg_priority=1), -1),
}


@pytest.mark.parametrize("number", BROKEN)
def test_a_condition_that_does_not_hold_there_is_seen_and_its_queue_manager_judges_the_same(number, there, connection):
    there.begin()
    breaks, priority = BROKEN[number]
    breaks(there)
    verdict, own = explained(connection, priority), there.qm.explain(QUEUE, priority)
    assert (answer(verdict, number).holds, verdict.fires) == ("NO", False)
    assert verdict.fails == own.fails
    assert verdict.values["not_seen"] == []


def test_eleven_twelve_and_thirteen_are_seen_by_the_messages_that_wait(there, connection):
    there.begin(trigger_type="depth", trigger_depth=5)
    there.qm.put(QUEUE, b"one")
    few = explained(connection)
    assert [answer(few, number).holds for number in ("11", "12", "13")] == ["NO", "NO", "NO"]
    there.alter(QUEUE, trigger_type="first")
    there.alter("", "QMGR", trigger_interval=0)
    enough = explained(connection)
    there.alter("", "QMGR", trigger_interval=999_999_999)
    assert [answer(enough, number).holds for number in ("11", "12", "13")] == ["yes", "yes", "yes"]


def test_what_mq_does_not_tell_is_marked(there, connection):
    there.begin(trigger_msg_priority=3)
    there.qm.put(QUEUE, b"one", priority=5)
    verdict = explained(connection, 5)
    assert answer(verdict, "3").holds == answer(verdict, "11").holds == NOT_SEEN
    assert {"priorities", "last_trigger"} <= set(verdict.values["unseen"])
    assert not verdict.fires


def test_handles_and_uncommitted_messages_are_seen_by_pcf(there, connection, pair):
    there.begin()
    with pair[1].connect(application="loader") as other, other.open(QUEUE, "input_shared", "output") as queue:
        queue.put(b"one", syncpoint=True)
        seen = look_at_queue(connection, QUEUE)
        assert (seen.uncommitted, seen.queue.depth) == (1, 1)
        assert [(handle.application, handle.for_input) for handle in seen.handles] == [("loader", True)]
        other.backout()


def test_without_the_command_server_mqinq_shows_the_rest(there, connection):
    there.begin()
    there.alter(COMMANDS, inhibit_put="inhibited")
    try:
        verdict = explained(connection)
    finally:
        there.alter(COMMANDS, inhibit_put="allowed")
    assert verdict.fires
    assert set(verdict.values["unseen"]) == {"uncommitted", "handles"}
    assert "2051" in verdict.values["unseen"]["uncommitted"]


def test_a_command_server_that_does_not_answer_is_waited_for_no_longer_than_the_limit(there, connection):
    there.begin()
    there.alter(COMMANDS, inhibit_get="inhibited")
    try:
        seen = look_at_queue(connection, QUEUE, timeout_s=0.1)
    finally:
        there.alter(COMMANDS, inhibit_get="allowed")
    assert "did not answer in 0.1 s" in seen.unseen[Fact.UNCOMMITTED]


def test_an_alias_leads_to_its_queue_and_other_kinds_are_refused(there, connection):
    there.begin()
    define(there.qm, "PAY.ALIAS", "QALIAS", base_q_name=QUEUE)
    try:
        verdict = explained(connection, q_name="PAY.ALIAS")
        assert (verdict.fires, verdict.values["base_q_name"]) == (True, QUEUE)
        with pytest.raises(QWrongType, match="nothing triggers for it"):
            look_at_queue(connection, "SYSTEM.DEFAULT.MODEL.QUEUE")
        with pytest.raises(UnknownObjectName, match="NOBODY at MQREAL"):
            look_at_queue(connection, "NOBODY")
    finally:
        there.qm.call(Delete(object_type="QALIAS", name="PAY.ALIAS"))


# -- on the command line ---------------------------------------------------------------------------------------


def test_explain_shows_the_conditions_there_and_what_this_side_has(there, trigmon):
    there.begin()
    there.monitor.close()
    shown = trigmon("explain", f"{QUEUE}@REAL")
    assert shown.exit_code == 0, shown.stderr
    assert "A put on PAY@MQREAL with priority 0 would NOT write a trigger message: 8 does not hold." in shown.stdout
    assert "Bridge REAL reads the queue's initiation queue" in shown.stdout
    assert "Process PAY.LOAD is NOT defined here." in shown.stdout
    assert trigmon("explain", f"{QUEUE}@{THERE}", "--exit-status").exit_code == 10


def test_explain_in_json_has_what_the_table_has(there, trigmon):
    there.begin()
    (shown,) = objects(trigmon("explain", f"{QUEUE}@REAL", "--output", "json"))
    assert (shown["q_name"], shown["fires"], len(shown["conditions"])) == ("PAY@MQREAL", True, 14)
    assert shown["bridge"]["initiation_q_is_read"] is True
    assert shown["values"]["current_q_depth"] == 0


def test_a_change_of_a_real_queue_is_rehearsed_and_not_made(there, trigmon):
    there.begin()
    there.qm.put(QUEUE, b"one")
    shown = trigmon("explain", f"{QUEUE}@REAL", "--with", "TRIGTYPE=EVERY")
    assert "would write a trigger message (by condition 1)" in shown.stdout
    assert "The change itself would write a trigger message (by condition 13)." in shown.stdout
    assert there.qm.explain(QUEUE).values["trigger_msg_priority"] == 0
    again = trigmon("explain", f"{QUEUE}@REAL", "--with", "PROCESS=OTHER")
    assert "PROCESS(OTHER) is not defined" in again.stdout


def test_a_bridge_that_there_is_not_is_named(there, trigmon):
    file = __file__
    assert "not both" in trigmon("explain", f"{QUEUE}@REAL", "--display", file).stderr
    refused = trigmon("explain", f"{QUEUE}@REEL")
    assert refused.exit_code == 2
    assert "did you mean 'REAL'" in refused.stderr
    assert trigmon("explain", f"{QUEUE}@REAL", "--why-not").exit_code == 2


CHANGE = """\
scenario: an EVERY queue triggers for each message while a program reads it
steps:
- put: {queue: PAY}
  triggers: []
- mqsc: ALTER QLOCAL(PAY) TRIGTYPE(EVERY)
  triggers: [PAY]
- put: {queue: PAY}
  triggers: [PAY]
- check: {queue: PAY, CURDEPTH: 5, IPPROCS: 1}
"""


def test_a_scenario_begins_with_a_real_queue_and_with_its_display(there, trigmon, pair, tmp_path):
    there.begin()
    there.stack.enter_context(there.qm.open(QUEUE, "input_shared"))
    for _ in range(3):
        there.qm.put(QUEUE, b"one")
    scenario = tmp_path / "change.yaml"
    scenario.write_text(CHANGE)
    asked = trigmon("simulate", "--from", f"{QUEUE}@REAL", str(scenario))
    assert asked.exit_code == 0, asked.stdout
    words = (f"QLOCAL({QUEUE}) ALL", f"QLOCAL({INITIATION}) ALL", f"PROCESS({PROCESS}) ALL", "QMGR ALL")
    script = tmp_path / "display.mqsc"
    script.write_text("".join(f"DISPLAY {word}\n" for word in words))
    display = tmp_path / "display.txt"
    display.write_text(pair[1].trigmon("mqsc", str(script)).stdout)
    shown = trigmon("simulate", "--from", str(display), str(scenario), "--output", "json")
    assert shown.exit_code == 0, shown.stdout
    assert json.loads(shown.stdout)["passed"] is True
    explained_here = trigmon("explain", QUEUE, "--display", str(display))
    assert "would NOT write a trigger message: 4 does not hold" in explained_here.stdout


def test_a_scenario_cannot_begin_with_what_was_not_seen(there, trigmon, tmp_path):
    there.begin()
    scenario, display = tmp_path / "change.yaml", tmp_path / "display.txt"
    scenario.write_text(CHANGE)
    display.write_text("AMQ8409I: Display Queue details.\n   QUEUE(PAY)   TYPE(QLOCAL)\n   INITQ(PAY.INIT)\n")
    refused = trigmon("simulate", "--from", str(display), str(scenario))
    assert refused.exit_code == 2
    assert "the text has no DISPLAY QLOCAL(PAY.INIT) ALL" in refused.stderr
    display.write_text("nothing\n")
    assert "DISPLAY QLOCAL(NAME) ALL" in trigmon("simulate", "--from", str(display), str(scenario)).stderr

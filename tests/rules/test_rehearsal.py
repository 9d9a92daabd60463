"""Rehearsing: the verdict of a put, and of the change itself, as if a queue had other attributes."""

import pytest

from tests.worlds import World
from trigmon.mq.calls import Alter, Display, Explain, Rehearse
from trigmon.mq.enums import OpenOption
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Refused

INITQ = "SYSTEM.DEFAULT.INITIATION.QUEUE"
CHANGES = [
    {"trigger_control": "off"},
    {"trigger_type": "every"},
    {"trigger_type": "depth", "trigger_depth": 3},
    {"trigger_type": "depth", "trigger_depth": 7},
    {"trigger_msg_priority": 5},
    {"process_name": "NONE"},
    {"initiation_q_name": "OTHER.INITQ"},
    {"inhibit_get": "inhibited"},
    {"max_wait_s": 30},
    {"msg_delivery_sequence": "fifo", "trigger_msg_priority": 2},
]


@pytest.fixture
def world(tmp_path):
    made = World("memory", tmp_path)
    made.define("P", "PROCESS", appl_id="/bin/true")
    made.define("OTHER.INITQ")
    made.define("Q", trigger_control="on", process_name="P", initiation_q_name=INITQ)
    made.define("ALIAS", "QALIAS", base_q_name="Q")
    for _ in range(2):
        made.put("Q")
    made.open(INITQ, OpenOption.INPUT_SHARED, as_="monitor")
    made.clock.advance(500)
    yield made
    made.qm.stop()


@pytest.mark.parametrize("attributes", CHANGES, ids=str)
def test_the_verdict_is_the_one_that_explain_gives_once_the_queue_is_altered(world, attributes):
    world.clock.advance(1)
    rehearsed = world.did(Rehearse(q_name="Q", attributes=attributes))
    before = world.did(Display(object_type="QLOCAL", name="Q")).rows
    saving = rehearsed.values.pop("saving")
    written = len(world.telling.triggers)
    world.did(Alter(object_type="QLOCAL", name="Q", attributes=attributes))
    assert before != world.did(Display(object_type="QLOCAL", name="Q")).rows
    assert saving["fires"] is (len(world.telling.triggers) > written)
    if not saving["fires"]:  # firing leaves a stamp, and switches DEPTH off
        assert rehearsed == world.did(Explain(q_name="Q"))


def test_nothing_is_changed(world):
    seen = world.did(Explain(q_name="Q", why_not=True)), world.did(Display(object_type="QLOCAL", name="Q"))
    world.did(Rehearse(q_name="Q", attributes={"trigger_type": "every", "description": "another"}))
    assert seen == (
        world.did(Explain(q_name="Q", why_not=True)),
        world.did(Display(object_type="QLOCAL", name="Q")),
    )


def test_a_change_that_would_itself_write_a_trigger_message_says_so(world):
    world.did(Alter(object_type="QLOCAL", name="Q", attributes={"trigger_control": "off"}))
    saving = world.did(Rehearse(q_name="Q", attributes={"TRIGGER": "on"})).values["saving"]
    assert (saving["fires"], saving["occasion"]) == (True, "13")
    assert all(condition["holds"] == "yes" for condition in saving["conditions"])


def test_a_change_of_what_no_occasion_looks_at_is_none(world):
    saving = world.did(Rehearse(q_name="Q", attributes={"description": "another"})).values["saving"]
    assert saving == {"fires": False, "occasion": "", "fails": [], "conditions": []}


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (Rehearse(q_name="NONE", attributes={}), Reason.UNKNOWN_OBJECT_NAME),
        (Rehearse(q_name="ALIAS", attributes={}), Reason.Q_WRONG_TYPE),
        (Rehearse(q_name="Q", attributes={"trigger_depth": 0}), Reason.ATTR_VALUE_ERROR),
        (Rehearse(q_name="Q", attributes={"definition_type": "predefined"}), Reason.ATTR_VALUE_FIXED),
        (Rehearse(q_name="Q", attributes={"colour": "red"}), Reason.SELECTOR_ERROR),
        (Rehearse(q_name="Q", attributes={}, priority=-2), Reason.PRIORITY_ERROR),
    ],
)
def test_what_alter_or_explain_would_refuse_is_refused(world, call, reason):
    reply = world.do(call)
    assert isinstance(reply, Refused)
    assert Reason(reply.reason) == reason

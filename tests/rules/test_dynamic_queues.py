"""Dynamic queues where a scenario has no words for it: their names, waiting gets, several units, both stores' rows."""

import re

import pytest

from tests.worlds import STORES, World
from trigmon.mq.calls import (
    Alter,
    Backout,
    Close,
    Commit,
    Disconnect,
    Display,
    DisplayHandles,
    Explain,
    Get,
    Inquire,
    Open,
    Put,
    Set,
)
from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.enums import CloseOption, GetOption, OpenOption
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Refused

OUT, IN, INQUIRE, SET = OpenOption.OUTPUT, OpenOption.INPUT_SHARED, OpenOption.INQUIRE, OpenOption.SET
DELETE, PURGE = int(CloseOption.DELETE), int(CloseOption.DELETE_PURGE)
WAIT = int(GetOption.WAIT)


@pytest.fixture(params=STORES)
def world(request, tmp_path):
    made = World(request.param, tmp_path)
    made.define("T", "QMODEL", description="temporary")
    made.define("P", "QMODEL", definition_type="permanent_dynamic")
    yield made
    made.end()


def refusal(world, call, as_="app"):
    reply = world.do(call, as_)
    assert isinstance(reply, Refused), reply
    return Reason(reply.reason)


def opened(world, model, name="AMQ.*", options=OUT | IN, as_="app"):
    return world.did(Open(object_name=model, options=options, dynamic_q_name=name), as_)


def names(world):
    rows = world.did(Display(object_type="QLOCAL"), "operator").rows
    return [row["name"] for row in rows if not row["name"].startswith("SYSTEM.")]


def test_the_name_is_the_stem_and_sixteen_characters_of_its_own(world):
    made = [opened(world, "T", name).q_name for name in ("AMQ.*", "AMQ.*", "*", "A" * 32 + "*", "REPLIES", "EXACT   ")]
    for name, stem in zip(made, ["AMQ.", "AMQ.", "", "A" * 32], strict=False):
        assert re.fullmatch(stem + "[0-9A-F]{16}", name)
    assert made[4:] == ["REPLIES", "EXACT"]
    assert len(set(made)) == len(made)
    assert sorted(names(world)) == sorted(made)


def test_names_made_after_a_restart_are_new_ones(world):
    before = opened(world, "P", "P.*").q_name
    world.crash()
    after = opened(world, "P", "P.*").q_name
    assert before != after
    assert sorted(names(world)) == sorted([before, after])


def test_a_default_name_begins_as_mqs(world):
    reply = world.did(Open(object_name="T", options=OUT))
    assert reply.q_name.startswith("AMQ.")


def test_the_queue_is_the_models_but_for_its_name_and_its_birth(world):
    world.clock.advance(5000)
    handle = opened(world, "T", "MINE", OUT | INQUIRE).handle
    values = world.did(Inquire(handle=handle)).values
    assert (values["name"], values["q_type"], values["definition_type"]) == ("MINE", "local", "temporary_dynamic")
    assert (values["description"], values["open_output_count"]) == ("temporary", 1)
    assert values["created_ms"] == world.clock.now()


def test_opened_to_set_the_new_queue_is_set_and_the_model_stays(world):
    handle = opened(world, "T", "MINE", SET).handle
    world.did(Set(handle=handle, attributes={"trigger_depth": 7}))
    rows = world.did(Display(object_type="queue", name="*"), "operator").rows
    depths = {row["name"]: row.get("trigger_depth") for row in rows}
    assert (depths["MINE"], depths["T"]) == (7, 1)


def test_a_model_that_is_not_shareable_makes_a_queue_for_one_reader(world):
    world.define("N", "QMODEL", shareability="not_shareable")
    opened(world, "N", "MINE", IN)
    assert refusal(world, Open(object_name="MINE", options=IN), "other") == Reason.OBJECT_IN_USE


@pytest.mark.parametrize(("option", "said"), [("input_exclusive", "exclusive"), ("input_shared", "shared")])
def test_opened_for_input_as_the_queue_defines_the_new_queue_is_open_as_its_model_says(world, option, said):
    world.define("N", "QMODEL", def_input_open_option=option)
    handle = opened(world, "N", "MINE", OpenOption.INPUT_AS_Q_DEF | INQUIRE).handle
    world.put("MINE", b"m")
    assert world.did(Get(handle=handle)).data == b"m"
    assert world.did(Inquire(handle=handle, names=["open_input_count"])).values == {"open_input_count": 1}
    assert [row["input"] for row in world.did(DisplayHandles(q_name="MINE"), "operator").rows] == [said]


def test_a_refused_open_makes_no_queue(world):
    assert refusal(world, Open(object_name="T", options=0, dynamic_q_name="NEVER")) == Reason.OPTIONS_ERROR
    opened(world, "T", "ONE")
    assert refusal(world, Open(object_name="T", options=OUT, dynamic_q_name="ONE")) == Reason.OBJECT_ALREADY_EXISTS
    assert names(world) == ["ONE"]


def test_a_waiting_get_ends_when_the_queue_is_deleted_under_it(world):
    maker = opened(world, "T", "MINE", OUT).handle
    handle = world.open("MINE", IN, as_="reader")
    assert world.do(Get(handle=handle, options=WAIT, wait_interval_ms=-1), "reader") is None
    other = world.open("MINE", IN, as_="other")
    match = {"match": 1, "msg_id": b"x" * 24}
    assert world.do(Get(handle=other, options=WAIT, wait_interval_ms=-1, **match), "other") is None
    world.did(Close(handle=maker))
    ended = [(answer.session.identity.application, Reason(answer.reply.reason)) for answer in world.ended_waits]
    assert sorted(ended) == [("other", Reason.Q_DELETED), ("reader", Reason.Q_DELETED)]
    for name, number in (("reader", handle), ("other", other)):
        world.did(Close(handle=number), name)
    assert names(world) == []


def test_every_use_of_a_deleted_queue_is_refused_and_its_close_succeeds(world):
    maker = opened(world, "P", "MINE", OUT).handle
    handle = world.open("MINE", IN, OUT, INQUIRE, SET, OpenOption.BROWSE, as_="other")
    world.did(Close(handle=maker, options=DELETE))
    for call in (
        Put(handle=handle, data=b"m"),
        Get(handle=handle),
        Get(handle=handle, options=int(GetOption.BROWSE_FIRST)),
        Inquire(handle=handle),
        Set(handle=handle, attributes={"trigger_depth": 2}),
        Put(q_name="MINE", data=b"m"),
        Open(object_name="MINE", options=INQUIRE),
        Explain(q_name="MINE"),
    ):
        assert refusal(world, call, "other") == Reason.Q_DELETED
    world.did(Close(handle=handle, options=PURGE), "other")
    assert names(world) == []


def test_it_stays_until_the_last_of_several_units_and_handles_is_done(world):
    maker = opened(world, "T", "MINE", OUT).handle
    reader = world.open("MINE", IN, as_="reader")
    world.put("MINE", b"one")
    world.did(Get(handle=reader, options=2, unit=1), "reader")
    world.put("MINE", b"two", as_="putter", unit=1)
    world.did(Close(handle=maker))
    assert names(world) == ["MINE"]
    world.did(Backout(unit=1), "reader")
    assert names(world) == ["MINE"]
    world.did(Close(handle=reader), "reader")
    assert names(world) == ["MINE"]
    world.did(Commit(unit=1), "putter")
    assert names(world) == []


def test_without_a_handle_left_it_stays_until_the_last_of_several_units_is_done(world):
    maker = opened(world, "T", "MINE", OUT).handle
    for name in ("first", "second"):
        world.put("MINE", as_=name, unit=1)
    world.did(Close(handle=maker))
    world.did(Commit(unit=1), "first")
    assert names(world) == ["MINE"]
    world.did(Backout(unit=1), "second")
    assert names(world) == []


def test_a_lost_connection_with_work_on_its_own_queue_leaves_nothing(world):
    handle = opened(world, "T", "MINE").handle
    world.put("MINE", b"one")
    world.did(Get(handle=handle, options=2, unit=1))
    world.put("MINE", b"two", unit=1)
    world.qm.lost([world.session("app")])
    assert names(world) == []
    assert opened(world, "T", "MINE", as_="next").q_name == "MINE"


def test_a_disconnect_commits_first_and_closes_then(world):
    world.define("Q")
    opened(world, "T", "MINE")
    world.put("MINE", b"one", unit=1)
    world.put("Q", b"two", unit=1)
    world.did(Disconnect())
    assert names(world) == ["Q"]
    assert world.did(Get(handle=world.open("Q", IN))).data == b"two"


@pytest.mark.parametrize("end", ["restart", "crash"])
def test_what_a_start_finds(world, end):
    opened(world, "T", "TEMP")
    opened(world, "P", "PERM")
    deleted = opened(world, "P", "GONE").handle
    world.open("GONE", OUT, as_="other")
    for name, persistence in (("TEMP", 0), ("PERM", 1), ("PERM", 0), ("GONE", 1)):
        world.put(name, persistence=persistence)
    world.did(Close(handle=deleted, options=PURGE))
    getattr(world, end)()
    assert names(world) == ["PERM"]
    (row,) = world.did(Display(object_type="QLOCAL", name="PERM")).rows
    assert (row["definition_type"], row["current_q_depth"]) == ("permanent_dynamic", 1)
    for name in ("TEMP", "GONE"):
        assert opened(world, "P", name).q_name == name
        (row,) = world.did(Display(object_type="QLOCAL", name=name)).rows
        assert row["current_q_depth"] == 0


def test_a_queue_made_and_deleted_again_and_again_is_a_new_one_each_time(world):
    for _ in range(3):
        handle = opened(world, "P", "MINE").handle
        world.put("MINE", persistence=1)
        world.did(Close(handle=handle, options=PURGE))
    world.crash()
    handle = opened(world, "P", "MINE").handle
    assert refusal(world, Get(handle=handle)) == Reason.NO_MSG_AVAILABLE


def test_a_persistent_message_is_refused_whichever_way_it_comes(world):
    world.define("Q")
    handle = opened(world, "T", "MINE").handle
    persistent = MessageDescriptor(persistence=1)
    assert refusal(world, Put(handle=handle, descriptor=persistent)) == Reason.PERSISTENT_NOT_ALLOWED
    assert refusal(world, Put(q_name="MINE", descriptor=persistent)) == Reason.PERSISTENT_NOT_ALLOWED
    world.define("A", "QALIAS", base_q_name="MINE", def_persistence="persistent")
    assert refusal(world, Put(q_name="A")) == Reason.PERSISTENT_NOT_ALLOWED
    world.put("MINE")


def test_handles_are_counted_for_a_model_as_for_any(world):
    world.did(Open(object_name="", object_type="QMGR", options=INQUIRE))
    world.did(Alter(object_type="QMGR", name="", attributes={"max_handles": 1}), "operator")
    assert refusal(world, Open(object_name="T", options=OUT)) == Reason.HANDLE_NOT_AVAILABLE
    assert names(world) == []

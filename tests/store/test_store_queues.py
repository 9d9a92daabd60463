"""What every store must do with queues: clear, move, delete, and their aliases."""

from __future__ import annotations

import pytest

from tests.store.reading import IN, OUT, SYNC, names
from trigmon.mq.calls import (
    Backout,
    Clear,
    Delete,
    Disconnect,
    Display,
    Get,
    Inquire,
    Move,
    Open,
    PutMany,
    Set,
)
from trigmon.mq.descriptors import padded_id
from trigmon.mq.enums import OpenOption
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Refused
from trigmon.rules.model.stored_messages import SLICE


def test_clearing_goes_in_slices_and_wants_the_queue_closed(world):
    world.define("Q")
    world.did(PutMany(q_name="Q", bodies=[b"x"] * 300))
    handle = world.open("Q", OUT)
    assert world.do(Clear(q_name="Q")).reason == Reason.OBJECT_IN_USE
    world.qm.lost([world.session("app")])
    assert handle
    replies = [world.did(Clear(q_name="Q")), world.did(Clear(q_name="Q"))]
    assert [(r.count, r.more) for r in replies] == [(256, True), (44, False)]


def test_moving_keeps_the_descriptor_and_the_order(world):
    world.define("FROM")
    world.define("TO")
    for data in (b"a", b"b"):
        world.put("FROM", data, msg_id=padded_id(data))
    assert world.did(Move(q_name="FROM", to_q_name="TO")).count == 2
    handle = world.open("TO", IN)
    got = world.did(Get(handle=handle))
    assert (got.data, got.descriptor.msg_id) == (b"a", padded_id(b"a"))


def test_moving_goes_on_behind_any_number_of_expired_messages(world):
    world.define("FROM")
    world.define("TO")
    for _ in range(SLICE + 1):
        world.put("FROM", b"late", expiry=1)
    world.put("FROM", b"good")
    world.clock.advance(1000)
    first = world.did(Move(q_name="FROM", to_q_name="TO"), "operator")
    assert (first.count, first.more) == (0, True)
    assert world.did(Move(q_name="FROM", to_q_name="TO"), "operator").count == 1
    assert world.queue_depth("FROM") == 0


def test_deleting_a_queue_wants_it_empty_or_purged_and_a_new_one_of_its_name_is_empty(world):
    world.define("Q", def_persistence="persistent")
    world.put("Q")
    assert world.do(Delete(object_type="QLOCAL", name="Q")).reason == Reason.Q_NOT_EMPTY
    world.did(Delete(object_type="QLOCAL", name="Q", purge=True))
    world.define("Q")
    assert names(world, "Q") == []


@pytest.mark.parametrize("options", [(), (OpenOption.INPUT_SHARED,)])
def test_an_alias_is_inquired_and_set_as_itself_whatever_else_it_is_opened_for(world, options):
    world.define("BASE")
    world.define("ALIAS", "QALIAS", base_q_name="BASE")
    handle = world.open("ALIAS", OpenOption.INQUIRE, OpenOption.SET, *options)
    world.did(Set(handle=handle, attributes={"inhibit_put": "inhibited"}))
    names = ["base_q_name", "inhibit_put"]
    wanted = {"base_q_name": "BASE", "inhibit_put": "inhibited"}
    assert world.did(Inquire(handle=handle, names=names)).values == wanted
    assert world.do(Set(handle=handle, attributes={"trigger_control": "on"})).reason == Reason.SELECTOR_ERROR


def test_a_moved_message_keeps_its_backout_count(world):
    world.define("A", def_persistence="persistent")
    world.define("B")
    world.put("A")
    for unit in (1, 2, 3):
        world.did(Get(handle=world.open("A", IN), options=SYNC, unit=unit))
        world.did(Backout(unit=unit))
    world.did(Disconnect())
    world.did(Move(q_name="A", to_q_name="B"), "operator")
    world.did(Get(handle=world.open("B", IN), options=SYNC, unit=1))
    world.did(Backout(unit=1))
    assert world.did(Get(handle=world.open("B", IN))).descriptor.backout_count == 4


def test_a_move_onto_an_alias_of_the_same_queue_is_refused(world):
    world.define("A")
    world.define("AL", "QALIAS", base_q_name="A")
    world.put("A")
    assert isinstance(world.do(Move(q_name="A", to_q_name="AL"), "operator"), Refused)


def test_an_open_alias_and_an_open_process_are_not_deleted(world):
    world.define("A")
    world.define("AL", "QALIAS", base_q_name="A")
    world.define("P", "PROCESS", appl_id="/bin/true")
    world.open("AL", OUT)
    world.did(Open(object_name="P", object_type="PROCESS", options=OpenOption.INQUIRE))
    for kind, name in (("QALIAS", "AL"), ("PROCESS", "P")):
        refused = world.do(Delete(object_type=kind, name=name), "operator")
        assert isinstance(refused, Refused) and refused.reason == Reason.OBJECT_IN_USE


def test_a_queue_that_is_its_own_initiation_queue_keeps_to_maxdepth(world):
    world.define("P", "PROCESS", appl_id="/bin/true")
    own = {"trigger_control": "on", "trigger_type": "every", "initiation_q_name": "OWN", "process_name": "P"}
    world.define("OWN", max_q_depth=1, **own)
    world.open("OWN", IN)
    world.put("OWN", as_="other")
    (row,) = world.did(Display(object_type="QLOCAL", name="OWN")).rows
    assert row["current_q_depth"] == 1

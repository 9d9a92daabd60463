"""Contexts beyond the scenarios: who may set one, what time a message says, and what leaves with it."""

import pytest

from tests.worlds import World
from trigmon.mq.calls import Close, Get, GetMany, Open, Put
from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.enums import ApplType, OpenOption, PutOption
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Refused
from trigmon.qmgr.sessions import Identity

IN, OUT, SAVE = OpenOption.INPUT_SHARED, OpenOption.OUTPUT, OpenOption.SAVE_ALL_CONTEXT
PASS_ALL, SET_ALL = PutOption.PASS_ALL_CONTEXT.value, PutOption.SET_ALL_CONTEXT.value
SET_IDENTITY, NONE = PutOption.SET_IDENTITY_CONTEXT.value, PutOption.NO_CONTEXT.value


@pytest.fixture
def world(tmp_path):
    made = World("memory", tmp_path)
    made.define("Q")
    made.define("OUT")
    made.define("XQ", usage="transmission")
    made.define("R", "QREMOTE", remote_q_name="X", remote_q_mgr_name="QM9", xmit_q_name="XQ")
    yield made
    made.qm.stop()


def put(world, q_name="Q", options=0, as_="app", handle=0, context=0, **fields):
    descriptor = MessageDescriptor(**fields)
    return world.do(
        Put(q_name=q_name, data=b"m", options=options, handle=handle, context=context, descriptor=descriptor), as_
    )


def got(world, q_name="Q"):
    return world.did(Get(handle=world.open(q_name, IN, as_="reader")), "reader").descriptor


@pytest.mark.parametrize("options", [SET_ALL, SET_IDENTITY])
def test_only_an_administrator_sets_a_context_by_an_open_or_a_put(world, options):
    stranger = Identity(client_id="c", application="stranger", user="somebody", monitor=True)
    world.sessions["stranger"] = world.qm.connect(stranger)
    reply = put(world, options=options, as_="stranger", user_identifier="root")
    assert (type(reply), reply.reason) == (Refused, Reason.NOT_AUTHORIZED)
    reply = world.do(Open(object_name="Q", options=int(OUT) | options), "stranger")
    assert reply.reason == Reason.NOT_AUTHORIZED
    world.did(Open(object_name="Q", options=int(OUT | OpenOption.PASS_ALL_CONTEXT)), "stranger")
    world.did(Put(q_name="Q"), "stranger")
    assert got(world).user_identifier == "somebody"


@pytest.mark.parametrize(("who", "writer"), [("stranger", ApplType.UNIX), ("app", ApplType.QMGR)])
def test_nobody_but_an_administrator_passes_on_that_the_queue_manager_wrote_a_message(world, who, writer):
    world.sessions["stranger"] = world.qm.connect(Identity(client_id="c", application="stranger", user="somebody"))
    put(world, options=SET_ALL, put_appl_type=int(ApplType.QMGR), put_appl_name="QM1", appl_origin_data="1")
    source = world.did(Open(object_name="Q", options=int(IN | SAVE)), who).handle
    world.did(Get(handle=source), who)
    handle = world.did(Open(object_name="OUT", options=int(OUT | OpenOption.PASS_ALL_CONTEXT)), who).handle
    assert not isinstance(put(world, "", PASS_ALL, who, handle, source), Refused)
    found = got(world, "OUT")
    assert (found.put_appl_type, found.put_appl_name, found.appl_origin_data) == (writer, "QM1", "1")


def test_a_message_without_context_does_not_say_when_it_was_put(world):
    put(world, options=NONE)
    assert got(world).put_ms == 0
    put(world, "R", options=NONE)
    reply = world.did(Get(handle=world.open("XQ", IN)))
    assert reply.data[408:424] == b" " * 16
    assert reply.descriptor.put_ms == world.clock.now()


def test_the_time_of_the_put_is_part_of_what_is_passed_on_and_set(world):
    first = world.clock.now()
    put(world)
    world.clock.advance(60_000)
    handle = world.open("Q", IN, SAVE)
    world.did(Get(handle=handle))
    put(world, "OUT", options=PASS_ALL, context=handle)
    assert got(world, "OUT").put_ms == first
    put(world, options=SET_ALL, put_ms=77_000, put_appl_type=6)
    assert got(world).put_ms == 77_000
    put(world, options=SET_ALL, put_appl_type=6)
    assert got(world).put_ms == world.clock.now()


@pytest.mark.parametrize(
    "fields",
    [
        {"put_appl_name": "x" * 29},
        {"put_appl_type": 2**31},
        {"put_ms": -1},
        {"put_ms": 2**60},
        {"user_identifier": "x" * 13},
    ],
)
def test_what_does_not_fit_its_field_is_refused_only_where_it_counts(world, fields):
    assert put(world, options=SET_ALL, **fields).reason == Reason.MD_ERROR
    assert not isinstance(put(world, **fields), Refused)


def test_a_passed_time_does_not_shorten_what_an_expiry_on_the_way_has_left(world):
    put(world)
    world.clock.advance(60_000)
    handle = world.open("Q", IN, SAVE)
    world.did(Get(handle=handle))
    put(world, "R", options=PASS_ALL, context=handle, expiry=100)
    world.clock.advance(4000)
    reply = world.did(Get(handle=world.open("XQ", IN)))
    assert (reply.descriptor.expiry, int.from_bytes(reply.data[120:124], "little")) == (60, 60)


def test_the_last_of_several_got_at_once_is_the_one_whose_context_is_kept(world):
    put(world, as_="one")
    put(world, as_="two")
    handle = world.open("Q", IN, SAVE)
    world.did(GetMany(handle=handle, count=5))
    put(world, "OUT", options=PASS_ALL, context=handle)
    assert got(world, "OUT").put_appl_name == "two"


def test_a_context_goes_with_its_handle_and_belongs_to_its_connection(world):
    put(world)
    handle = world.open("Q", IN, SAVE)
    world.did(Get(handle=handle))
    assert put(world, "OUT", options=PASS_ALL, context=handle, as_="other").reason == Reason.CONTEXT_HANDLE_ERROR
    world.did(Close(handle=handle))
    assert put(world, "OUT", options=PASS_ALL, context=handle).reason == Reason.CONTEXT_HANDLE_ERROR

"""The span that put a message travels with it, and with the trigger message that the put fires."""

from __future__ import annotations

import pytest

from tests.worlds import STORES, World
from trigmon.mq.calls import Commit, Get, Put, PutMany
from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.enums import OpenOption
from trigmon.mq.reasons import Reason
from trigmon.mq.traceparent import is_traceparent, names_exporter, within

INITQ = "SYSTEM.DEFAULT.INITIATION.QUEUE"
SPANS = [f"00-{'a' * 32}-{number:016x}-01" for number in range(1, 4)]
TRACED = [MessageDescriptor(traceparent=span) for span in SPANS]


@pytest.fixture(params=STORES)
def world(request, tmp_path):
    made = World(request.param, tmp_path)
    made.define("P", "PROCESS", appl_id="/bin/true")
    on = {"process_name": "P", "trigger_control": "on", "initiation_q_name": INITQ, "def_persistence": "persistent"}
    made.define("Q", trigger_type="every", **on)
    made.define("PLAIN", def_persistence="persistent")
    made.open(INITQ, OpenOption.INPUT_SHARED, as_="monitor")
    yield made
    made.end()


def taken(world, q_name):
    handle = world.open(q_name, OpenOption.INPUT_SHARED, as_="reader")
    found = []
    while (reply := world.do(Get(handle=handle), "reader")) and not getattr(reply, "reason", 0):
        found.append(reply.descriptor.traceparent)
    return found


def test_each_put_through_a_handle_has_its_own_and_so_has_its_trigger_message(world):
    handle = world.open("Q", OpenOption.OUTPUT)
    for descriptor in (*TRACED[:2], MessageDescriptor(), TRACED[2]):
        world.did(Put(handle=handle, data=b"x", descriptor=descriptor))
    assert taken(world, INITQ) == taken(world, "Q") == [*SPANS[:2], "", SPANS[2]]


def test_the_puts_of_one_call_and_of_a_unit_of_work_have_theirs_also_after_a_restart(world):
    world.did(PutMany(q_name="PLAIN", bodies=[b"1", b"2"], descriptor=TRACED[0]))
    world.did(Put(q_name="PLAIN", data=b"3", descriptor=TRACED[1], options=2, unit=1))
    world.did(Commit(unit=1))
    if world.kind != "memory":
        world.restart()
    assert taken(world, "PLAIN") == [SPANS[0], SPANS[0], SPANS[1]]


@pytest.mark.parametrize(
    "text",
    ["x", SPANS[0].upper(), f"{SPANS[0]}\n", f"00-{'0' * 32}-{1:016x}-01", f"00-{'a' * 32}-{0:016x}-01", "0" * 100_000],
)
def test_another_form_is_refused_and_not_stored_also_where_the_handle_keeps_a_plan(text, tmp_path):
    world = World("memory", tmp_path)
    world.define("PLAIN")
    handle = world.open("PLAIN", OpenOption.OUTPUT)
    for _ in range(2):
        world.did(Put(handle=handle, data=b"x", descriptor=TRACED[0]))
        refused = world.do(Put(handle=handle, data=b"x", descriptor=MessageDescriptor(traceparent=text)))
        assert refused.reason == Reason.MD_ERROR
        assert len(refused.about) < 1000
    assert world.queue_depth("PLAIN") == 2


def test_a_span_within_a_trace_keeps_its_flags_and_one_within_none_begins_a_trace():
    unrecorded = SPANS[0].removesuffix("1") + "0"
    assert within(unrecorded, "b" * 32, "c" * 16) == f"00-{'a' * 32}-{'c' * 16}-00"
    begun = within("", "b" * 32, "c" * 16)
    assert begun == f"00-{'b' * 32}-{'c' * 16}-01"
    assert is_traceparent(begun)


@pytest.mark.parametrize(
    ("variables", "sends"),
    [
        ({}, True),
        ({"OTEL_TRACES_EXPORTER": "console,otlp"}, True),
        ({"OTEL_TRACES_EXPORTER": ""}, True),
        ({"OTEL_TRACES_EXPORTER": "none"}, False),
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, False),
        ({"OTEL_SDK_DISABLED": "True"}, False),
    ],
)
def test_variables_that_switch_the_export_off_hold_where_an_endpoint_is_named(variables, sends):
    assert names_exporter({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318", **variables}) is sends
    assert not names_exporter(variables)

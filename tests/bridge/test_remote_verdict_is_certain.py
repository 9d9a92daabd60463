"""A certain verdict on a queue elsewhere is true, whatever it was that could not be seen."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from trigmon.bridge.remote_verdict import explain_seen
from trigmon.bridge.seen_queue import ZOS, Fact, NotSeen, ObjectValues, Source, seen_queue
from trigmon.mq.attributes import LocalQueue, Process, QueueManagerDefinition
from trigmon.mq.enums import Inhibit, MsgDeliverySequence, TriggerControl, TriggerType, Usage
from trigmon.rules.explain import explained
from trigmon.rules.model.facts import WideFacts
from trigmon.rules.model.handles import ConnectionFacts
from trigmon.rules.model.queue_facts import QueueFacts, counted_priority

NOW, LONG = 1_000_000, 500_000
QUEUES = st.builds(
    LocalQueue,
    name=st.just("Q"),
    trigger_control=st.sampled_from(TriggerControl),
    trigger_type=st.sampled_from((TriggerType.FIRST, TriggerType.EVERY, TriggerType.DEPTH, TriggerType.NONE)),
    trigger_msg_priority=st.integers(0, 2),
    trigger_depth=st.integers(1, 3),
    def_priority=st.integers(0, 2),
    msg_delivery_sequence=st.sampled_from(MsgDeliverySequence),
    inhibit_get=st.sampled_from(Inhibit),
    usage=st.sampled_from(Usage),
    process_name=st.sampled_from(("", "P")),
    initiation_q_name=st.sampled_from(("", "IQ")),
)
TRUTHS = st.fixed_dictionaries(
    {
        "definition": QUEUES,
        "priorities": st.lists(st.integers(0, 2), max_size=3),
        "readers": st.integers(0, 1),
        "process": st.booleans(),
        "initiation": st.sampled_from(("none", "closed", "unread", "read")),
        "interval": st.sampled_from((0, LONG)),
        "stamp": st.sampled_from((None, NOW - 1, NOW - LONG)),
    }
)
HIDDEN = st.sets(st.sampled_from((*(f for f in Fact if f.name not in ("PRIORITIES", "LAST_TRIGGER", "GROUP")),)))


def facts_of(truth):
    """Returns the state as its own queue manager knows it."""
    definition = truth["definition"]
    depths = [0] * 10
    for priority in truth["priorities"]:
        depths[counted_priority(definition, priority)] += 1
    queue = QueueFacts(definition, tuple(depths), truth["readers"], trigger_stamp_ms=truth["stamp"])
    closed = Inhibit.INHIBITED if truth["initiation"] == "closed" else Inhibit.ALLOWED
    initiation = QueueFacts(
        LocalQueue(name="IQ", inhibit_put=closed), open_input_count=int(truth["initiation"] == "read")
    )
    has_process = truth["process"] and definition.process_name
    has_initiation = truth["initiation"] != "none" and definition.initiation_q_name
    return WideFacts(
        q_mgr=QueueManagerDefinition(name="QM2", trigger_interval=truth["interval"]),
        connection=ConnectionFacts(0, "", "", "", 0),
        queue=queue,
        process=Process(name="P") if has_process else None,
        initiation=initiation if has_initiation else None,
    )


def source_of(truth, hidden):
    """Returns what a source shows of it that cannot see what is hidden."""
    facts = facts_of(truth)
    definition = truth["definition"]
    names = ("current_q_depth", "open_input_count")
    values = {name: getattr(definition, name) for name in definition.__struct_fields__ if name in ATTRIBUTES}
    values |= dict(zip(names, (facts.queue.depth, truth["readers"]), strict=True))
    for fact, lost in ((Fact.DEPTH, names[:1]), (Fact.READERS, names[1:]), (Fact.ATTRIBUTES, tuple(values))):
        if fact in hidden:
            values = {name: value for name, value in values.items() if name not in lost}
    unseen = dict.fromkeys(hidden, "2035")
    initiation = facts.initiation
    shown = None
    if initiation is not None:
        count = {} if Fact.MONITOR in hidden else {"open_input_count": initiation.open_input_count}
        put = initiation.definition.inhibit_put
        shown = ObjectValues("IQ", {"inhibit_get": Inhibit.ALLOWED, "inhibit_put": put, "usage": Usage.NORMAL} | count)
    return Source(
        "Q",
        "QM2",
        ObjectValues("Q", values),
        processes={"P": NotSeen("2035") if Fact.PROCESS in hidden else facts.process and ObjectValues("P", {})},
        initiations={"IQ": NotSeen("2035") if Fact.INITIATION in hidden else shown},
        trigger_interval_ms=None if Fact.INTERVAL in hidden else truth["interval"],
        platform=ZOS,
        unseen=unseen,
    )


ATTRIBUTES = (
    *("trigger_control", "trigger_type", "trigger_msg_priority", "trigger_depth", "def_priority", "usage"),
    *("msg_delivery_sequence", "inhibit_get", "inhibit_put", "process_name", "initiation_q_name"),
)


@given(TRUTHS, HIDDEN, st.integers(0, 2), st.booleans())
def test_what_is_certain_is_true(truth, hidden, priority, knows_a_run):
    facts = facts_of(truth)
    real = explained(facts.queue, priority, 0, facts, None, NOW)
    seen = seen_queue(source_of(truth, hidden))
    if knows_a_run and truth["stamp"] is not None:
        seen = seen.triggered_at(truth["stamp"])
    found = explain_seen(seen, priority, NOW)
    if found.fires:
        assert real.fires, (found, real)
    elif not found.values["not_seen"]:
        assert not real.fires, (found, real)
    real_fails = {each.number for each in real.conditions if each.holds == "NO"}
    for each in found.conditions:
        if each.number not in ("3", "11", "12", "13") and each.holds != "not seen":
            assert (each.holds == "NO") == (each.number in real_fails), (each, found, real)


@given(TRUTHS)
def test_where_nothing_is_hidden_and_a_run_is_known_the_verdict_is_the_queue_managers(truth):
    truth = truth | {"definition": replace(truth["definition"], trigger_msg_priority=0), "interval": 0}
    facts = facts_of(truth)
    real = explained(facts.queue, 1, 0, facts, None, NOW)
    found = explain_seen(seen_queue(source_of(truth, set())), 1, NOW)
    assert (found.fires, found.fails) == (real.fires, real.fails)
    assert found.values["not_seen"] == []

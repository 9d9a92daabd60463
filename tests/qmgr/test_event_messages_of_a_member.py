"""A member of a group reports events on its own queue, and on none of the group's: the ledger waits for no database."""

import json

from tests.in_process import InProcess
from tests.rules.launching_ledger import TRIGGER
from trigmon.mq.calls import Alter, Caps, ChangeRun, Define, Delete, Get, Open, Put, RecordRun, Statistics, Status
from trigmon.mq.enums import OpenOption
from trigmon.mq.event_kinds import EVENT_QUEUE

SYNCPOINT = 2


def member():
    qm = InProcess(in_group=True)
    qm(Alter(object_type="QMGR", name="", attributes={"trigmon_event": "enabled"}))
    qm(Define(object_type="PROCESS", name="P", attributes={"appl_id": "/bin/true"}))
    shared = {"qsg_disp": "shared", "cf_struc_name": "A", "def_persistence": "persistent"}
    qm(Define(object_type="QLOCAL", name="SHARED", attributes=shared))
    return qm, shared


def fails(qm, run_id):
    qm(RecordRun(run_id=run_id, record={**TRIGGER, "state": "due", "q_name": "SHARED"}, caps=Caps()))
    qm(ChangeRun(run_id=run_id, fields={"state": "exited", "exit_status": 1, "why": "ended with status 1"}))


def dropped(qm):
    return qm(Statistics()).values["events"].get("event_message_dropped", 0)


def test_a_members_event_is_on_its_own_queue_whatever_else_its_turn_did_to_shared_ones():
    qm, _ = member()
    qm(Put(q_name="SHARED", data=b"x"))
    fails(qm, "0000000000000001")
    handle = qm(Open(object_name=EVENT_QUEUE, options=int(OpenOption.INPUT_SHARED))).handle
    event = json.loads(qm(Get(handle=handle)).data)
    assert (event["event"], event["q_name"]) == ("run_failed", "SHARED")
    assert dropped(qm) == 0


def test_an_event_queue_that_is_the_groups_or_gone_takes_none():
    qm, shared = member()
    qm(Delete(object_type="QLOCAL", name=EVENT_QUEUE))
    fails(qm, "0000000000000001")
    assert dropped(qm) == 1
    qm(Define(object_type="QLOCAL", name=EVENT_QUEUE, attributes=shared))
    fails(qm, "0000000000000002")
    assert dropped(qm) == 2
    found = [item["text"] for item in qm(Status()).values["attention"] if item["kind"] == "events_dropped"]
    assert found == ["events are dropped: the queue is shared"]

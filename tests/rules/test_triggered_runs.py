"""A monitor's get that records runs does what a get and RecordRuns do, in one call, on every store."""

from __future__ import annotations

import pytest

from tests.worlds import STORES, World
from trigmon.mq.calls import Backout, Caps, GetMany, NewRuns, Open, Outcome, Put, Resume, Runs
from trigmon.mq.calls import Pause as PauseRuns
from trigmon.mq.descriptors import FORMAT_TRIGGER, MessageDescriptor, TriggerMessage, pack_tm
from trigmon.mq.enums import GetOption, OpenOption, UnitOutcome
from trigmon.mq.reasons import Reason
from trigmon.qmgr.sessions import Identity

INITQ = "SYSTEM.DEFAULT.INITIATION.QUEUE"
SYNCPOINT = int(GetOption.SYNCPOINT)
WAITS = SYNCPOINT | int(GetOption.WAIT)
UNIX, WINDOWS = 6, 5


class Intake(World):
    """Two queues of type EVERY with their process P, and a monitor that has the initiation queue open."""

    def __init__(self, kind, directory, *, is_administrator):
        super().__init__(kind, directory)
        self.define("P", "PROCESS", appl_id="/bin/true", env_data="tail", user_data="u")
        common = {"initiation_q_name": INITQ, "trigger_control": "on", "trigger_type": "every"}
        self.define("Q", process_name="P", trigger_data="t", **common)
        self.define("Q2", process_name="P", **common)
        identity = Identity(client_id="m", application="m", user="mon", monitor=True, administrator=is_administrator)
        self.sessions["monitor"] = self.qm.connect(identity)
        self.initq = self.open(INITQ, OpenOption.INPUT_SHARED, as_="monitor")
        self.unit = 1

    def get(self, options=SYNCPOINT, after="0", types=(UNIX,), caps=None, **fields):
        new = NewRuns("m:1", "host", after, list(types), caps or Caps())
        given = {"handle": self.initq, "count": 32, "options": options, "unit": self.unit, "runs": new} | fields
        return GetMany(**given)

    def take(self, **fields):
        reply = self.did(self.get(**fields), "monitor")
        self.unit += bool(reply.runs)
        return reply

    def ledger(self):
        return {row["run_id"]: row for row in self.did(Runs()).rows}

    def forge(self, descriptor=None, **fields):
        """A trigger message that an application puts."""
        message = TriggerMessage(**{"q_name": "Q", "process_name": "P"} | fields)
        descriptor = descriptor or MessageDescriptor(format=FORMAT_TRIGGER)
        self.did(Put(q_name=INITQ, descriptor=descriptor, data=pack_tm(message)))


@pytest.fixture(params=[True, False], ids=["an administrator's", "a monitor's own user"])
def is_administrator(request):
    return request.param


@pytest.fixture(params=STORES)
def world(request, is_administrator, tmp_path):
    made = Intake(request.param, tmp_path, is_administrator=is_administrator)
    yield made
    made.end()


def test_trigger_messages_become_runs_that_the_ledger_has_and_the_unit_is_committed(world):
    world.put("Q")
    world.put("Q2")
    reply = world.take()
    assert reply.messages == []
    assert [(run["q_name"], run["state"], run["occasion"]) for run in reply.runs] == [
        ("Q", "due", "1"),
        ("Q2", "due", "1"),
    ]
    first = reply.runs[0]
    assert (first["trigger_data"], first["appl_id"], first["user_data"]) == ("t", "/bin/true", "u")
    assert (first["monitor"], first["host"], first["initiation_q"]) == ("m:1", "host", INITQ)
    assert first["process"] is not None
    ledger = world.ledger()
    assert {name: run.items() <= ledger[name].items() for name, run in ((r["run_id"], r) for r in reply.runs)} == {
        run["run_id"]: True for run in reply.runs
    }
    assert world.queue_depth(INITQ) == 0
    assert world.did(Outcome(client_id="m", unit=1), "monitor").outcome == UnitOutcome.COMMITTED
    world.crash()
    assert world.ledger().keys() == {run["run_id"] for run in reply.runs}


def test_a_waiting_get_records_its_run_in_the_turn_of_the_put(world):
    assert world.do(world.get(WAITS, wait_interval_ms=500), "monitor") is None
    world.put("Q")
    (answer,) = world.ended_waits
    assert world.ledger().keys() == {run["run_id"] for run in answer.reply.runs}


def test_ids_sort_behind_the_last_one_that_the_monitor_knows(world):
    world.put("Q")
    world.put("Q2")
    far = "7" * 16
    ids = [run["run_id"] for run in world.take(after=far).runs]
    assert ids == sorted({far, *ids})[1:]


def test_what_may_not_start_is_held_for_the_same_reasons_as_elsewhere(world):
    world.did(PauseRuns(what="queue", name="Q", reason="a release"), "operator")
    world.put("Q")
    world.put("Q2")
    world.put("Q2")
    paused, first, second = world.take(caps=Caps(instances=1)).runs
    assert (paused["state"], first["state"], second["state"]) == ("held", "due", "held")
    assert "1 of P run" in second["why"]
    world.did(Resume(what="queue", name="Q"), "operator")
    assert world.ledger()[paused["run_id"]]["state"] == "held"


@pytest.mark.parametrize("odd", ["an application's", "of no format", "cut short", "of a type that is not started"])
def test_one_message_that_is_not_plainly_a_run_leaves_all_of_them_to_the_monitor(world, odd):
    world.put("Q")
    if odd == "an application's":
        world.forge()
    elif odd == "of no format":
        world.put(INITQ)
    elif odd == "cut short":
        world.put(INITQ, b"TM", format=FORMAT_TRIGGER)
    reply = world.take(types=[WINDOWS]) if odd == "of a type that is not started" else world.take()
    assert len(reply.messages) == 1 + (odd != "of a type that is not started")
    assert reply.runs == []
    assert world.ledger() == {}
    world.did(Backout(unit=world.unit), "monitor")
    assert world.queue_depth(INITQ) == len(reply.messages)


@pytest.mark.parametrize(
    "wrong",
    [{"unit": 0}, {"options": 0, "unit": 0}, {"count": 65}, {"after": ""}, {"after": "x"}, {"after": "f" * 17}],
    ids=str,
)
def test_it_takes_syncpoint_a_unit_and_as_many_as_are_recorded_at_a_time(world, wrong):
    world.put("Q")
    assert world.do(world.get(**wrong), "monitor").reason == Reason.OPTIONS_ERROR
    assert world.queue_depth(INITQ) == 1
    assert world.ledger() == {}


def test_an_application_records_no_run_and_gets_nothing_so(world):
    identity = Identity(client_id="a", application="a", user="app")
    world.sessions["stranger"] = world.qm.connect(identity)
    handle = world.did(Open(object_name=INITQ, options=int(OpenOption.INPUT_SHARED)), "stranger").handle
    world.put("Q")
    assert world.do(world.get(handle=handle), "stranger").reason == Reason.NOT_AUTHORIZED
    assert world.queue_depth(INITQ) == 1
    assert world.ledger() == {}

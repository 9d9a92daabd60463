"""What a run executes is the queue manager's word or a definition's, whatever a monitor writes, on every store."""

from __future__ import annotations

import pytest

from tests.worlds import STORES, World
from trigmon.mq.calls import Alter, Backout, ChangeRun, GetMany, Put, RecordRun, RecordRuns, Runs, StartRuns
from trigmon.mq.descriptors import FORMAT_TRIGGER, MessageDescriptor, TriggerMessage, pack_tm, unpack_tm
from trigmon.mq.enums import GetOption, OpenOption, PutOption
from trigmon.mq.reasons import Reason
from trigmon.qmgr.sessions import Identity
from trigmon.rules.model.run_program import FIXED

INITQ = "SYSTEM.DEFAULT.INITIATION.QUEUE"
FIELDS = TriggerMessage.__struct_fields__
OTHER = {"q_name": "Q2", "process_name": "P2", "trigger_data": "x", "appl_type": 22, "appl_id": "/tmp/pwn"}
OTHER |= {"env_data": "; id", "user_data": "them"}


class Watched(World):
    """A queue Q with its process P, and a monitor that is no administrator and has the initiation queue open."""

    def __init__(self, kind, directory):
        super().__init__(kind, directory)
        self.define("P", "PROCESS", appl_id="/bin/true", env_data="tail", user_data="u")
        self.define("P2", "PROCESS", appl_id="/bin/false")
        common = {"initiation_q_name": INITQ, "trigger_control": "on", "trigger_type": "every"}
        self.define("Q", process_name="P", trigger_data="t", **common)
        self.define("Q2", process_name="P2", **common)
        identity = Identity(client_id="m", application="monitor", user="mon", monitor=True)
        self.sessions["monitor"] = self.qm.connect(identity)
        options = OpenOption.INPUT_SHARED | OpenOption.SAVE_ALL_CONTEXT
        self.initq = self.open(INITQ, options, as_="monitor")
        self.unit = 0

    def take(self):
        """The trigger messages there are, got in a new unit of work, as a monitor gets them."""
        self.unit += 1
        call = GetMany(handle=self.initq, count=32, options=int(GetOption.SYNCPOINT), unit=self.unit)
        return [unpack_tm(got.data) for got in self.did(call, "monitor").messages]

    def fire(self):
        """What a trigger message of the queue manager's own says, got just now."""
        self.put("Q")
        (trigger,) = self.take()
        return said(trigger)

    def forge(self, **fields):
        """A trigger message that an application puts, and a monitor gets."""
        message = TriggerMessage(**{"q_name": "Q", "process_name": "P", "trigger_data": "mine"} | fields)
        descriptor = MessageDescriptor(format=FORMAT_TRIGGER)
        self.did(Put(q_name=INITQ, descriptor=descriptor, data=pack_tm(message)), "monitor")
        (trigger,) = self.take()
        return said(trigger)

    def record(self, record, run_id="r1", state="due"):
        whole = {**record, "run_id": run_id, "state": state, "monitor": "m:1"}
        return self.do(RecordRuns(records=[whole], unit=self.unit), "monitor")

    def change(self, run_id="r1", **fields):
        return self.do(ChangeRun(run_id=run_id, fields=fields), "monitor")

    def run(self, run_id="r1"):
        rows = self.did(Runs(where={"run_id": run_id})).rows
        return rows[0] if rows else None


def said(trigger):
    return {name: getattr(trigger, name) for name in FIELDS}


@pytest.fixture(params=STORES)
def world(request, tmp_path):
    made = Watched(request.param, tmp_path)
    yield made
    made.end()


def test_a_trigger_message_of_the_queue_managers_own_starts_what_it_says_also_when_all_is_altered_since(world):
    record = world.fire()
    world.did(Alter(object_type="PROCESS", name="P", attributes={"appl_id": "/bin/other"}))
    world.did(Alter(object_type="QLOCAL", name="Q", attributes={"process_name": "P2"}))
    came = {"initiation_q": "ANOTHER", "occasion": "13"}
    assert world.record(record | came).runs[0].state == "due"
    run = world.run()
    assert {name: run[name] for name in FIELDS} == record
    assert (run["initiation_q"], run["occasion"]) == (INITQ, "1")


@pytest.mark.parametrize("name", FIELDS)
def test_a_record_that_executes_anything_else_is_refused_and_the_get_is_not_committed(world, name):
    record = world.fire()
    assert world.record(record | {name: OTHER[name]}).reason == Reason.NOT_AUTHORIZED
    assert world.run() is None
    world.did(Backout(unit=world.unit), "monitor")
    assert [said(trigger) for trigger in world.take()] == [record]


@pytest.mark.parametrize("state", ["due", "held", "started", "serving", "drained", ""])
def test_without_a_trigger_message_nothing_that_could_start_is_recorded(world, state):
    record = world.fire()
    assert world.record(record).runs[0].state == "due"
    for call in (
        RecordRun(run_id="r2", record={**record, "state": state}),
        RecordRun(run_id="r2", record={**record, "state": state, "process_name": "", "appl_id": "/tmp/pwn"}),
        RecordRun(run_id="r2", record={"state": state}),
        RecordRun(run_id="r2", record={name: value for name, value in record.items() if name != "appl_id"}),
        RecordRuns(records=[{**record, "run_id": "r2", "state": state}]),
    ):
        assert world.do(call, "monitor").reason == Reason.NOT_AUTHORIZED
    assert world.run("r2") is None


def test_a_trigger_message_that_an_application_put_starts_the_definition_of_its_queues_process_alone(world):
    forged = world.forge(appl_id="/tmp/pwn", env_data="x", user_data="y", appl_type=6)
    assert world.record(forged).reason == Reason.NOT_AUTHORIZED
    defined = {"appl_type": 6, "appl_id": "/bin/true", "env_data": "tail", "user_data": "u"}
    assert world.record(forged | defined).runs[0].state == "due"
    assert (world.run()["trigger_data"], world.run()["occasion"]) == ("mine", "")


@pytest.mark.parametrize(
    "odd",
    [
        *({"q_name": name} for name in ("../../etc/passwd", "GONE", "q", "Q2", "")),
        *({"process_name": name} for name in ("P2", "GONE", "")),
    ],
)
def test_one_whose_queue_does_not_name_its_process_starts_nothing(world, odd):
    forged = world.forge(**odd)
    appl_id = "/bin/false" if odd.get("process_name") == "P2" else "/bin/true"
    defined = {"appl_type": 6, "appl_id": appl_id, "env_data": "tail", "user_data": "u"}
    for record in (forged, forged | defined):
        assert world.record(record).reason == Reason.NOT_AUTHORIZED
    assert world.record(forged, state="failed").runs[0].state == "failed"


def test_a_context_that_is_passed_on_makes_no_trigger_message_the_queue_managers(world):
    record = world.fire()
    world.did(Backout(unit=world.unit), "monitor")
    world.take()
    out = world.open(INITQ, OpenOption.OUTPUT | OpenOption.PASS_ALL_CONTEXT, as_="monitor")
    forged = TriggerMessage(**record | {"appl_id": "/tmp/pwn"})
    options = int(PutOption.PASS_ALL_CONTEXT | PutOption.NO_SYNCPOINT)
    descriptor = MessageDescriptor(format=FORMAT_TRIGGER)
    call = Put(handle=out, descriptor=descriptor, data=pack_tm(forged), options=options, context=world.initq)
    world.did(call, "monitor")
    world.did(Backout(unit=world.unit), "monitor")
    assert [trigger.appl_id for trigger in world.take()] == ["/bin/true", "/tmp/pwn"]
    assert world.record(record | {"appl_id": "/tmp/pwn"}).reason == Reason.NOT_AUTHORIZED


@pytest.mark.parametrize("state", ["due", "held"])
def test_what_a_run_executes_never_changes(world, state):
    record = world.fire()
    if state == "held":
        world.did(Alter(object_type="PROCESS", name="P", attributes={"instances": 1}))
        world.record(record, "r0")
        record = world.fire()
    assert world.record(record).runs[0].state == state
    before = world.run()
    for name in FIXED:
        value = {"run_as": "root"} if name == "process" else OTHER.get(name, "other")
        assert world.change(**{name: value, "why": "x"}).reason == Reason.NOT_AUTHORIZED
    assert world.run() == before
    assert world.change(**{name: before[name] for name in FIELDS}).state == state


@pytest.mark.parametrize("end", ["exited", "failed", "joined", "cancelled", "unknown", "odd"])
def test_what_has_ended_is_never_started_again(world, end):
    world.record(world.fire())
    assert world.change(state=end).state == end
    for state in ("", None, "due", "held", "started"):
        world.change(state=state)
        assert world.run()["state"] == end
    assert world.did(StartRuns(initiation_q=INITQ, monitor="m:1"), "monitor").records == []


@pytest.mark.parametrize("state", ["started", "serving", "drained"])
def test_what_has_a_program_gets_no_second_one(world, state):
    world.record(world.fire())
    world.change(state=state)
    for again in ("due", "held", "", None):
        world.change(state=again)
        assert world.run()["state"] == state

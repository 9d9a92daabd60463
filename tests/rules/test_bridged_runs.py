"""Runs for queues elsewhere in the ledger, on every store: one a message, by definitions, judged by what was seen."""

from __future__ import annotations

import pytest

from tests.worlds import STORES, World
from trigmon.mq.calls import Alter, ChangeRun, Pause, Pauses, RecordRuns, Resume, RetryRun, Runs, StartRuns
from trigmon.mq.enums import ObjectType, OpenOption
from trigmon.mq.reasons import Reason
from trigmon.mq.run_parts import QueueThere
from trigmon.qmgr.sessions import Identity
from trigmon.rules.model.bridged_queue import is_unopened_there
from trigmon.rules.runs.new_run_record import bridged_run_id

INITQ = "SYSTEM.DEFAULT.INITIATION.QUEUE"
RECORD = {
    "q_name": "Q@PROD",
    "process_name": "P",
    "trigger_data": "theirs",
    "appl_type": 6,
    "appl_id": "/bin/true",
    "env_data": "",
    "user_data": "",
    "occasion": "",
    "initiation_q": INITQ,
    "bridge": "FAR",
    "remote_q_mgr": "PROD",
    "remote_initiation_q": "THEIR.INITQ",
    "remote_msg_id": "01" * 24,
    "attempt": 1,
}
FIRST = {"trigger_type": "first", "depth": 3, "readers": 0, "first": "aa", "backouts": 0}


class Bridged(World):
    """A process P, and monitors of two users that are no administrators."""

    def __init__(self, kind, directory):
        super().__init__(kind, directory)
        self.define("P", "PROCESS", appl_id="/bin/true")
        for user in ("mon", "other"):
            identity = Identity(client_id=user, application="monitor", user=user, monitor=True)
            self.sessions[user] = self.qm.connect(identity)
            self.open(INITQ, OpenOption.INPUT_SHARED, as_=user)

    def record(self, run_id="1", by="mon", state="due", **fields):
        whole = {**RECORD, "run_id": run_id, "state": state, "monitor": "m:1", **fields}
        return self.do(RecordRuns(records=[whole]), by)

    def ends(self, run_id="1", status=3, after=None):
        after = {**FIRST, **after} if after is not None else None
        fields = {"state": "exited", "exit_status": status, "end_ms": 9, "why": "ended", "remote_after": after}
        self.did(ChangeRun(run_id=run_id, fields=fields), "mon")

    def rows(self, **where):
        return self.did(Runs(where=where)).rows[::-1]

    def started(self, by="mon"):
        return [run["run_id"] for run in self.did(StartRuns(initiation_q=INITQ, monitor="m:1"), by).records]

    def alter(self, **attributes):
        self.did(Alter(object_type=ObjectType.PROCESS.name, name="P", attributes=attributes))


@pytest.fixture(params=STORES)
def world(request, tmp_path):
    made = Bridged(request.param, tmp_path)
    yield made
    made.end()


def test_the_id_of_a_run_is_that_of_its_message_whenever_it_comes():
    first = bridged_run_id(1_800_000_000_000, "PROD", b"one")
    assert first == bridged_run_id(1_800_000_000_000, "PROD", b"one")
    others = [
        bridged_run_id(1_800_000_000_000, "PROD", b"two"),
        bridged_run_id(1_800_000_000_000, "TEST", b"one"),
        bridged_run_id(1_800_000_000_000, "PROD", b"one", 1),
        bridged_run_id(1_800_000_000_010, "PROD", b"one"),
    ]
    assert len({first, *others}) == 5
    assert bridged_run_id(1, "PROD", b"one") < first < others[-1]
    assert all(len(one) == 16 for one in (first, *others, bridged_run_id(-1, "", b"")))


def test_a_message_has_one_record(world):
    assert world.record().runs[0].state == "due"
    assert world.record().reason == Reason.OBJECT_ALREADY_EXISTS
    assert len(world.rows()) == 1


@pytest.mark.parametrize(
    "odd",
    [
        {"appl_id": "/tmp/pwn"},
        {"env_data": "; id"},
        {"user_data": "x"},
        {"appl_type": 22},
        {"process_name": "GONE"},
        {"process_name": ""},
        {"q_name": "Q"},
        {"q_name": "Q@TEST"},
    ],
)
def test_of_a_message_from_elsewhere_the_definition_says_what_runs(world, odd):
    assert world.record(**odd).reason == Reason.NOT_AUTHORIZED
    assert world.rows() == []
    assert world.record(state="failed", **odd).runs[0].state == "failed"


def test_a_monitor_of_an_administrator_records_what_the_message_says(world):
    assert world.record(by="app", appl_id="/bin/theirs", process_name="").runs[0].state == "due"


def test_another_user_is_started_by_an_administrators_monitor_alone(world):
    world.alter(run_as="somebody")
    assert world.record().reason == Reason.NOT_AUTHORIZED
    assert world.record(by="app").runs[0].state == "due"


def test_a_run_that_one_users_monitor_recorded_is_started_by_no_other_users(world):
    world.did(Pause(what="queue", name="Q@PROD"))
    assert world.record(bridged_by="other").runs[0].state == "held"
    assert world.rows()[0]["bridged_by"] == "mon"
    world.did(Resume(what="queue", name="Q@PROD"))
    assert world.started(by="other") == []
    assert world.started(by="mon") == ["1"]


def test_where_it_came_from_does_not_change(world):
    world.record()
    for name in ("bridge", "remote_q_mgr", "remote_initiation_q", "remote_msg_id", "bridged_by", "remote_before"):
        assert world.do(ChangeRun(run_id="1", fields={name: "x"}), "mon").reason == Reason.NOT_AUTHORIZED


def test_of_a_first_queue_one_waits_while_another_runs_and_the_rest_join_it(world):
    states = [world.record(str(number), remote_before=FIRST).runs[0].state for number in range(1, 5)]
    assert states == ["due", "held", "joined", "joined"]
    assert world.rows(run_id="2")[0]["why"] == "run 1 is under way for Q@PROD"
    assert world.started() == []
    world.ends("1", 0, after={"first": "bb"})
    assert world.started() == ["2"]


def test_of_an_every_queue_each_message_has_its_run(world):
    every = FIRST | {"trigger_type": "every"}
    assert [world.record(str(number), remote_before=every).runs[0].state for number in range(1, 4)] == ["due"] * 3


def test_what_failed_and_left_messages_there_is_tried_again(world):
    world.alter(retry=2, retry_wait_s=1)
    world.record(remote_before=FIRST)
    world.ends(after={})
    first, again = world.rows()
    assert (again["state"], again["attempt"], again["retries"]) == ("held", 2, first["run_id"])
    assert (again["q_name"], again["remote_q_mgr"], again["remote_msg_id"]) == ("Q@PROD", "PROD", "01" * 24)
    assert again["remote_before"] == first["remote_after"]


@pytest.mark.parametrize("after", [{"depth": 0, "first": ""}, None], ids=["nothing is left", "it was not seen"])
def test_what_failed_is_not_tried_again_where_nothing_is_left(world, after):
    world.alter(retry=2)
    world.record(remote_before=FIRST if after else None)
    world.ends(after=after)
    assert len(world.rows()) == (1 if after else 2)


def test_tries_of_a_queue_that_cannot_be_seen_come_to_an_end(world):
    world.alter(retry=1, retry_wait_s=1)
    world.record()
    world.ends()
    world.clock.advance(120_000)
    (again,) = world.started()
    world.ends(again)
    assert [run["state"] for run in world.rows()] == ["exited", "exited"]


@pytest.mark.parametrize("status", [0, 3])
def test_programs_that_leave_the_first_message_where_it_was_open_the_breaker(world, status):
    world.alter(breaker=3, retry=5, retry_wait_s=1)
    for number in range(1, 4):
        assert world.did(Pauses()).rows == []
        world.clock.advance(120_000)
        world.record(str(number), remote_before=FIRST)
        world.started()
        run_id = next(run["run_id"] for run in world.rows(state="due"))
        world.ends(run_id, status, after={"depth": 7, "backouts": 2})
    (pause,) = world.did(Pauses()).rows
    assert pause["name"] == "Q@PROD"
    assert "3 runs of P in a row removed no message" in pause["reason"]
    assert "7 messages wait there, the first is aa, backed out 2 times" in pause["reason"]


def test_programs_that_bring_another_message_to_the_front_open_no_breaker(world):
    world.alter(breaker=2)
    for number in range(1, 6):
        world.record(str(number), remote_before=FIRST | {"first": str(number)})
        world.ends(str(number), 0, after={"first": str(number + 1)})
    assert world.did(Pauses()).rows == []


UNCOMMITTED = {"depth": 2, "first": "", "uncommitted": 2}
UNSEEN = FIRST | {"first": ""}


def test_messages_that_are_not_committed_are_not_left(world):
    world.alter(retry=2, breaker=1)
    world.record(remote_before=FIRST)
    world.ends(after=UNCOMMITTED)
    assert [run["state"] for run in world.rows()] == ["exited"]
    assert world.did(Pauses()).rows == []
    world.clock.advance(120_000)
    world.record("2", remote_before=FIRST)
    world.ends("2", after=UNCOMMITTED | {"depth": 3})
    assert [run["attempt"] for run in world.rows(retries="2")] == [2]


@pytest.mark.parametrize(("priority", "tries"), [(2, 1), (3, 2), (-1, 2)], ids=["lower", "as high", "not seen"])
def test_messages_below_the_trigger_priority_are_not_left(world, priority, tries):
    world.alter(retry=2)
    world.record(remote_before=FIRST)
    world.ends(after={"trigger_priority": 3, "priority": priority})
    assert len(world.rows()) == tries


def test_successes_open_no_breaker_where_the_first_message_may_not_be_browsed(world):
    world.alter(breaker=2)
    for number in range(1, 5):
        world.record(str(number), remote_before=UNSEEN)
        world.ends(str(number), 0, after={"first": "", "depth": 7})
    assert world.did(Pauses()).rows == []


@pytest.mark.parametrize(("depth", "is_held"), [(2, False), (3, True)], ids=["it fell", "it stayed"])
def test_where_the_first_message_may_not_be_browsed_a_depth_that_fell_is_progress(world, depth, is_held):
    world.alter(breaker=1, retry=0)
    world.record(remote_before=UNSEEN)
    world.ends(status=3, after={"first": "", "depth": depth})
    assert bool(world.did(Pauses()).rows) is is_held


def test_a_program_that_has_its_queue_open_among_others_is_known_where_handles_are():
    assert is_unopened_there(QueueThere(readers=0))
    assert is_unopened_there(QueueThere(readers=2, own_readers=0))
    assert not is_unopened_there(QueueThere(readers=2, own_readers=1))
    assert not is_unopened_there(QueueThere(readers=2))


def test_a_run_is_repeated_by_a_run_that_waits_for_a_monitor(world):
    world.record(remote_before=FIRST)
    world.ends("1", 0, after={})
    world.alter(appl_id="/bin/mended")
    world.did(RetryRun(run_id="1"))
    again = world.rows()[-1]
    assert (again["state"], again["repeats"], again["q_name"], again["appl_id"]) == (
        "held",
        "1",
        "Q@PROD",
        "/bin/mended",
    )
    assert world.started() == [again["run_id"]]

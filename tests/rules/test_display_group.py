"""What a member tells of its group: who is in it, and what each has of the shared queues."""

from __future__ import annotations

from tests.in_process import InProcess
from trigmon.mq.calls import Define, DisplayGroup, Open, Put
from trigmon.mq.enums import OpenOption, PutOption
from trigmon.mq.replies import Values
from trigmon.rules.display_group import recovery_row, state_of
from trigmon.rules.model.group_members import Member


def member(**more) -> Member:
    said = {"epoch": 3, "is_serving": True, "silent_ms": 0, "lease_ms": 5000, "host": "h", "pid": 1}
    return Member("QM1", **said | more)


def test_a_group_is_shown_with_its_members_its_queues_and_who_has_them_open():
    qm = InProcess(in_group=True)
    qm(Define(object_type="QLOCAL", name="Q", attributes={"qsg_disp": "shared"}))
    qm(Define(object_type="QLOCAL", name="OWN"))
    qm(Open(object_name="Q", options=OpenOption.INPUT_EXCLUSIVE | OpenOption.OUTPUT))
    qm(Put(q_name="Q", data=b"m"))
    qm(Put(q_name="Q", data=b"m", options=int(PutOption.SYNCPOINT), unit=1))
    said = qm(DisplayGroup())
    assert isinstance(said, Values)
    assert said.values["group"] == "QSG1"
    assert [(row["name"], row["state"]) for row in said.values["members"]] == [("QM1", "serving")]
    (queue,) = said.values["queues"]
    assert (queue["name"], queue["current_q_depth"], queue["uncommitted_puts"]) == ("Q", 1, 1)
    (use,) = queue["members"]
    assert use == {
        "member": "QM1",
        "opens": 1,
        "open_input_count": 1,
        "exclusive": True,
        "open_output_count": 1,
        "uncommitted_puts": 1,
        "uncommitted_gets": 0,
    }


def test_who_is_in_no_group_tells_of_none():
    said = InProcess()(DisplayGroup())
    assert isinstance(said, Values)
    assert said.values["group"] == ""
    assert "members" not in said.values


def test_a_member_whose_lease_is_over_is_silent_until_it_is_recovered():
    assert state_of(member(silent_ms=5000)) == "serving"
    assert state_of(member(silent_ms=5001)) == "silent"
    assert state_of(member(silent_ms=5001, is_serving=False)) == "away"


def test_a_member_that_was_recovered_is_dead_until_it_comes_back_and_away_when_it_then_ends_in_order():
    assert state_of(member(is_serving=False, silent_ms=9000, recovered_ms=4000)) == "dead"
    assert state_of(member(is_serving=True, silent_ms=10, recovered_ms=4000)) == "serving"
    assert state_of(member(is_serving=False, silent_ms=3000, recovered_ms=4000)) == "away"


def test_a_recovery_tells_by_whom_and_what_was_backed_out():
    row = recovery_row(member(recovered_ms=70, recovered_by="QM2", puts=1, gets=2, opens=3, locks=4))
    assert row == {"name": "QM1", "by": "QM2", "ago_ms": 70, "puts": 1, "gets": 2, "opens": 3, "locks": 4}

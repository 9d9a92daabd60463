"""A namelist lasts, on every store, and a group's reaches each member."""

from __future__ import annotations

from tests.qmgr.members import Member
from tests.worlds import World
from trigmon.mq.calls import Alter, Define, Delete, Display


def names_of(member, name):
    return [row["names"] for row in member.did(Display(object_type="NAMELIST", name=name)).rows]


def test_a_namelist_outlasts_a_crash_and_a_restart_with_its_names_in_order(world: World):
    world.define("NIGHTLY", "NAMELIST", names=["Z", "A", "m.lower"])
    world.define("GONE", "NAMELIST", names=["X"])
    world.did(Delete(object_type="NAMELIST", name="GONE"))
    world.crash()
    assert names_of(world, "NIGHTLY") == [["Z", "A", "m.lower"]]
    world.did(Alter(object_type="NAMELIST", name="NIGHTLY", attributes={"names": ["B"]}))
    world.restart()
    assert names_of(world, "*") == [["B"], []]
    assert names_of(world, "GONE") == []


def test_a_namelist_of_the_group_is_copied_altered_and_deleted_on_each_member(tmp_path, group):
    one, two = (Member("memory", tmp_path, group, name) for name in ("QM1", "QM2"))
    of_group = {"names": ["A", "B"], "qsg_disp": "group"}
    one.did(Define(object_type="NAMELIST", name="OURS", attributes=of_group))
    two.qm.turn([])
    assert names_of(two, "OURS") == [["A", "B"]]
    one.did(Alter(object_type="NAMELIST", name="OURS", attributes={"names": ["C"], "qsg_disp": "group"}))
    two.qm.turn([])
    assert names_of(two, "OURS") == [["C"]]
    one.did(Delete(object_type="NAMELIST", name="OURS", qsg_disp="group"))
    two.qm.turn([])
    assert names_of(two, "OURS") == []
    for member in (one, two):
        member.die()

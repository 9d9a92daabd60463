"""Gets of an open unit of work mark no row before something needs the mark; outcomes are written with the database."""

import pytest

from tests.store.reading import statements
from tests.worlds import World
from trigmon.mq.calls import Backout, Commit, Get, Outcome, Reserve
from trigmon.mq.enums import GetOption, MatchOption, OpenOption, UnitOutcome
from trigmon.mq.replies import WasGot
from trigmon.store.sqlite import kept_gets

IN, BROWSE = OpenOption.INPUT_SHARED, OpenOption.BROWSE
SYNC = GetOption.SYNCPOINT
FIRST = GetOption.BROWSE_FIRST
MARKED = "SELECT count(taken_by) FROM message"
BODIES = [b"0", b"1", b"2", b"3"]


@pytest.fixture
def world(tmp_path):
    world = World("sqlite", tmp_path)
    world.define("Q", max_q_depth=99_999, def_persistence="persistent")
    world.define("OTHER")
    for body in BODIES:
        world.put("Q", body)
    world.store.idle()  # now they have rows
    yield world
    world.end()


def get(world, unit=0, as_="app", **how):
    """Returns the data and the backout count of the next message; None if there is none."""
    reply = world.do(Get(handle=world.open("Q", IN, as_=as_), options=SYNC if unit else 0, unit=unit, **how), as_)
    return (reply.data, reply.descriptor.backout_count) if isinstance(reply, WasGot) else None


def get_all(world, as_="getter"):
    got = []
    while found := get(world, as_=as_):
        got.append(found)
    return got


def marked(world):
    return world.store.rows(MARKED)[0][0]


def test_rows_are_removed_many_at_a_time_and_nothing_was_marked(world):
    seen = statements(world)
    assert [get(world, unit=1), get(world, unit=1)] == [(b"0", 0), (b"1", 0)]
    world.did(Commit(unit=1))
    assert get(world) == (b"2", 0)
    world.store.idle()
    changes = [statement for statement in seen if "message" in statement and not statement.startswith("SELECT")]
    assert [statement.split()[0] for statement in changes] == ["DELETE"]
    assert world.store.rows("SELECT count(*) FROM message") == [(1,)]
    assert get_all(world) == [(b"3", 0)]


def test_what_was_got_outside_syncpoint_is_not_there_again_behind_a_crash(world):
    assert get(world) == (b"0", 0)
    world.crash()
    assert get(world) == (b"1", 0)
    world.store.turns._commit()
    world.crash()
    assert get_all(world) == [(b"2", 0), (b"3", 0)]


def test_young_ones_that_are_got_and_committed_never_touch_the_database(world):
    get_all(world)
    get(world, unit=1)  # behind it the client's outcomes have a beginning
    world.did(Commit(unit=1))
    world.store.idle()
    handle = world.open("Q", IN)
    seen = statements(world)
    for unit in range(2, 102):
        world.put("Q", b"%d" % unit)
        assert world.did(Get(handle=handle, options=SYNC, unit=unit)).data == b"%d" % unit
        world.did(Commit(unit=unit))
    assert [statement for statement in seen if "message" in statement or "outcome" in statement] == []
    assert len(world.store.turns.young) == 0


@pytest.mark.parametrize("how", ["another look", "reserve", "commit", "idle", "count"])
def test_they_are_marked_when_something_needs_it(world, how, monkeypatch):
    monkeypatch.setattr(kept_gets, "MOST", 1 if how == "count" else 1000)
    get(world, unit=1)
    get(world, unit=1)
    assert marked(world) == (how == "count")
    if how == "another look":
        assert get(world, as_="other", correl_id=b"c" * 24, match=MatchOption.CORREL_ID) is None
    elif how == "reserve":
        world.did(Reserve(handle=world.open("Q", IN), consumer="JOB", max_messages=2))
    elif how == "commit":
        world.store.turns._commit()
    elif how == "idle":
        world.store.idle()
    assert marked(world) >= (1 if how == "count" else 2)
    world.did(Backout(unit=1))
    assert get_all(world)[:2] == [(b"0", 1), (b"1", 1)]


def test_nobody_else_sees_them(world):
    get(world, unit=1)
    handle = world.open("Q", IN, BROWSE, as_="other")
    assert world.did(Get(handle=handle, options=FIRST), "other").data == b"1"
    assert get_all(world) == [(b"1", 0), (b"2", 0), (b"3", 0)]
    assert world.store.standing.queues["Q"].depth == 0


@pytest.mark.parametrize("is_young", [False, True], ids=["with a row", "young"])
@pytest.mark.parametrize("flush", [False, True], ids=["", "behind a commit of the database"])
@pytest.mark.parametrize("end", ["backout", "crash", "restart", "commit", "commit and crash"])
def test_they_come_back_once_more_backed_out_or_are_gone(world, end, flush, is_young):
    if is_young:
        get_all(world)
        for body in BODIES:
            world.put("Q", body)
    got = [get(world, unit=1), get(world, unit=1)]
    assert got == [(b"0", 0), (b"1", 0)]
    if flush:
        world.store.turns._commit()
    if end == "backout":
        world.did(Backout(unit=1))
    elif end.startswith("commit"):
        world.did(Commit(unit=1))
    if end in ("crash", "restart"):
        getattr(world, end)()
    elif end == "commit and crash":
        world.crash()
    back = [] if end.startswith("commit") else [(b"0", 1), (b"1", 1)]
    assert get_all(world) == [*back, (b"2", 0), (b"3", 0)]
    world.restart()
    assert get_all(world) == []


def test_messages_of_groups_that_are_got_with_others_go_with_them(world):
    get_all(world)
    world.put("Q", b"plain")
    world.put("Q", b"item", group_id=b"g" * 24)
    assert len([get(world, unit=1), get(world, unit=1)]) == 2
    world.did(Commit(unit=1))
    world.crash()
    assert get_all(world) == []


def test_a_marked_one_skips_the_backout_and_is_committed_with_the_next_unit(world):
    handle = world.open("Q", IN)
    world.did(Get(handle=handle, options=SYNC | GetOption.MARK_SKIP_BACKOUT, unit=1))
    get(world, unit=1)
    world.did(Backout(unit=1))
    assert get_all(world) == [(b"1", 1), (b"2", 0), (b"3", 0)]
    world.did(Commit(unit=2))
    world.crash()
    assert get_all(world) == []


def test_a_call_that_is_undone_behind_its_marks_leaves_them_as_they_were(world):
    store = world.store
    get(world, unit=1)
    before = dict(store.gets.by_unit)
    store.mark()
    store._will_write()
    store.turns.begin_call()
    store.gets.write_all()
    store.outcomes.write_all()
    assert marked(world) == 1
    store.undo()
    assert (marked(world), store.gets.by_unit, store.gets._taken) == (0, before, 1)
    world.did(Commit(unit=1))
    assert store.gets._taken == 0
    assert get_all(world) == [(b"1", 0), (b"2", 0), (b"3", 0)]


# -- outcomes ------------------------------------------------------------------------------------------------------


def outcomes(world, *units):
    return [world.did(Outcome(client_id="client-app", unit=unit), "asker").outcome for unit in units]


@pytest.mark.parametrize("end", ["", "crash", "restart"])
def test_outcomes_of_the_last_units_are_known_whatever_happens(world, end):
    for unit in (1, 2, 3):
        get(world, unit=unit)
        world.did(Backout(unit=unit) if unit == 3 else Commit(unit=unit))
    if end:
        getattr(world, end)()
    assert outcomes(world, 2, 3) == [UnitOutcome.COMMITTED, UnitOutcome.BACKED_OUT]


def test_outcomes_are_written_once_a_client_with_the_database(world):
    for unit in range(1, 101):
        world.put("OTHER", unit=unit)
        world.did(Commit(unit=unit))
    seen = statements(world)
    world.store.idle()
    assert len([statement for statement in seen if "INTO outcome" in statement]) == 2
    assert world.store.rows("SELECT number FROM outcome ORDER BY number") == [(99,), (100,)]


class TestAFault:
    """What would break if a rule of theirs were left out; each is seen by what a program gets."""

    def test_no_marks_before_another_look(self, world, monkeypatch):
        monkeypatch.setattr(world.store.gets, "write_all", lambda: None)
        get(world, unit=1)
        world.store.ahead.forget_all()
        assert get(world, as_="other") == (b"0", 0)  # twice

    def test_no_marks_with_a_commit_of_the_database(self, world, monkeypatch):
        get(world, unit=1)
        monkeypatch.setattr(world.store.turns, "due", [])
        world.store.turns.begin()
        world.store.turns._commit()
        world.crash()
        assert get(world) == (b"0", 0)  # as if it had never been backed out

    def test_no_outcomes_with_a_commit_of_the_database(self, world, monkeypatch):
        get(world, unit=1)
        world.did(Commit(unit=1))
        monkeypatch.setattr(world.store.turns, "due", [])
        world.store.turns._commit()
        world.crash()
        assert outcomes(world, 1) != [UnitOutcome.COMMITTED]

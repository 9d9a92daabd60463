"""Which warm runs may start, what they wait for, and which sessions are to be released: no server is needed."""

from __future__ import annotations

import time

import pytest

from tests.launch.conftest import make_order
from trigmon.launch.launch_plan import LaunchPlan, Session
from trigmon.launch.spark.warm.connect_server import Server, Serving, Shelf
from trigmon.monitor.spark_servers.session_admission import SessionAdmission, Waiting


@pytest.fixture
def warm(tmp_path):
    return SessionAdmission(Shelf(tmp_path), "me", Serving(runs=2), "QM1")


def waiting(run_id, master="local", remote=""):
    from msgspec.structs import replace

    session = Session(remote=remote, master="" if remote else master)
    return Waiting(replace(make_order(), run_id=run_id), LaunchPlan(argv=["x"], environment={}, session=session))


def server(server_id="one", master="local"):
    return Server(server_id=server_id, monitor="me", master=master, port=1, ui_port=2, token="t", made_ms=0)


def due(warm, after_s=0.0):
    return [(each.given.run_id, each.is_last) for each in warm.to_release(time.monotonic() + after_s)[0]]


def test_a_run_waits_for_its_server_and_gets_a_session_there_that_is_written_down(warm):
    assert warm.admit(waiting("1")) is None
    assert warm.wanted() == {"local"}
    assert warm.reasons() == [("1", "its Spark Connect server does not answer yet")]
    assert warm.reasons() == []
    warm.is_warm(server())
    (ready,) = warm.ready()
    plan = warm.admit(ready)
    assert plan.environment["SPARK_REMOTE"].startswith("sc://localhost:1/;token=t;user_id=trigmon-QM1;session_id=")
    assert warm.shelf.session("1").server_id == "one"
    assert not warm.knows("1")


def test_one_of_another_master_does_not_start_there(warm):
    warm.is_warm(server())
    assert warm.admit(waiting("1", "local[9]")) is None


class TestElsewhere:
    def test_a_run_waits_until_its_server_has_answered(self, warm):
        assert warm.admit(waiting("1", remote="sc://far/;token=secret")) is None
        assert warm.wanted_elsewhere() == {"sc://far/;token=secret": 0}
        assert warm.wanted() == set()
        assert warm.reasons() == [("1", "sc://far does not answer yet")]
        warm.is_there("sc://far/;token=secret")
        plan = warm.admit(*warm.ready())
        assert plan.environment["SPARK_REMOTE"].startswith("sc://far/;token=secret;user_id=trigmon-QM1;session_id=")
        assert warm.wanted_elsewhere() == {"sc://far/;token=secret": 1}

    def test_no_run_goes_to_one_that_is_away_and_what_is_wrong_is_reported_once(self, warm):
        warm.is_there("sc://far")
        for _ in range(2):
            warm.is_away("sc://far", "refused", is_lost=False)
        assert warm.admit(waiting("1", remote="sc://far")) is None
        assert warm.reasons() == [("1", "sc://far does not answer: refused")]
        assert warm.reasons() == []

    def test_runs_outlive_its_absence_and_end_when_it_is_lost(self, warm):
        warm.is_there("sc://far")
        warm.admit(waiting("1", remote="sc://far"))
        warm.is_away("sc://far", "refused", is_lost=False)
        assert not warm.server_loss("1")
        warm.is_away("sc://far", "refused", is_lost=True)
        assert warm.server_loss("1") == "sc://far does not answer: refused"

    def test_what_is_to_be_released_there_waits_for_it_and_is_tried_when_it_answers(self, warm):
        warm.is_there("sc://far")
        warm.admit(waiting("1", remote="sc://far"))
        warm.is_away("sc://far", "refused", is_lost=True)
        warm.ended("1")
        assert due(warm, 60) == []
        assert warm.wanted_elsewhere() == {"sc://far": 0}
        warm.is_there("sc://far")
        assert due(warm) == [("1", False)]

    def test_what_never_can_be_released_there_is_given_up(self, warm):
        warm.is_there("sc://far")
        warm.admit(waiting("1", remote="sc://far"))
        warm.is_away("sc://far", "refused", is_lost=True)
        warm.ended("1")
        assert due(warm, 2 * 3600) == []
        assert warm.shelf.session("1") is None
        assert warm.wanted_elsewhere() == {}

    def test_it_is_asked_how_it_is_before_any_run_comes_where_that_is_expected(self, warm):
        warm.expect(["", "sc://far"])
        assert (warm.wanted(), warm.wanted_elsewhere()) == ({"local[*]"}, {"sc://far": 0})


def test_more_than_the_cap_wait_in_the_order_they_came(warm):
    warm.is_warm(server())
    admitted = [bool(warm.admit(waiting(str(number)))) for number in range(5)]
    assert admitted == [True, True, False, False, False]
    assert warm.ready() == []
    assert warm.reasons()[0] == ("2", "2 warm runs are under way, as many as connect.runs allows")
    warm.ended("0")
    assert [each.order.run_id for each in warm.ready()] == ["2"]


def test_what_an_earlier_monitor_had_counts(warm, tmp_path):
    warm.is_warm(server())
    for run_id in ("1", "2"):
        warm.admit(waiting(run_id))
    after = SessionAdmission(Shelf(tmp_path), "me", Serving(runs=2), "QM1")
    after.take_up("1")
    after.take_up("2")
    after.is_warm(server())
    assert after.admit(waiting("3")) is None
    assert after.uses("one") == 2


def test_a_session_is_released_twice_when_its_run_has_ended_and_forgotten_then(warm):
    warm.is_warm(server())
    warm.admit(waiting("1"))
    warm.ended("1")
    warm.ended("1")
    (first,) = warm.to_release(time.monotonic())[0]
    warm.released(first, "")
    assert due(warm) == []
    (last,) = warm.to_release(time.monotonic() + 60)[0]
    assert last.is_last
    assert warm.shelf.session("1")
    warm.released(last, "")
    assert warm.shelf.session("1") is None
    assert due(warm, 1e6) == []


def test_a_release_that_failed_is_tried_again(warm):
    warm.is_warm(server())
    warm.admit(waiting("1"))
    warm.ended("1")
    (first,) = warm.to_release(time.monotonic())[0]
    warm.released(first, "away")
    assert due(warm) == []
    assert due(warm, 60) == [("1", False)]


def test_sessions_of_runs_in_nobodys_hands_are_released(warm, tmp_path):
    warm.is_warm(server())
    warm.admit(waiting("1"))
    warm.admit(waiting("2"))
    after = SessionAdmission(Shelf(tmp_path), "me", Serving(), "QM1")
    after.take_up("2")
    after.sweep("me")
    after.sweep("another")
    assert due(after) == [("1", False)]


def test_the_end_of_a_server_dooms_its_runs_and_drops_its_sessions(warm):
    warm.is_warm(server())
    warm.admit(waiting("1"))
    warm.admit(waiting("2"))
    warm.ended("2")
    warm.is_over(server(), "it died")
    assert warm.server_loss("1")
    assert not warm.server_loss("2")
    assert [each.run_id for each in warm.shelf.all_sessions()] == ["1"]
    assert warm.admit(waiting("3")) is None
    assert warm.reasons() == [("3", "its Spark Connect server does not answer yet; the last one: it died")]
    warm.ended("1")
    assert not warm.server_loss("1")


def test_the_end_of_an_old_server_leaves_its_successor_alone(warm):
    old, new = server("old"), server("new")
    warm.is_warm(old)
    warm.is_warm(new)
    warm.is_over(old, "too old")
    assert warm.admit(waiting("1"))


def test_a_server_is_wanted_before_any_run_comes_where_that_is_expected(warm):
    looks = []
    warm.look = lambda: looks.append(1)
    warm.expect(["", "local[7]"])
    warm.expect(["local[7]", ""])
    assert warm.wanted() == {"local[*]", "local[7]"}
    assert len(looks) == 1


def test_what_waits_is_given_back_when_it_is_not_to_start(warm):
    warm.admit(waiting("1"))
    warm.admit(waiting("2"))
    assert [each.order.run_id for each in warm.drop(["2", "3"])] == ["2"]
    assert [each.order.run_id for each in warm.drop_all()] == ["1"]
    assert warm.wanted() == set()

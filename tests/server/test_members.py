"""Members of a queue-sharing group as processes: what one does the others see, and what one leaves is mended."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time

import psycopg
import pytest
from psycopg import sql

from tests.daemons import define
from tests.members import GROUP, LEASE_S, aside, depth, get, group_of, members, sees, settings, share, waits
from tests.waiting import until
from trigmon.mq.calls import Alter, Status
from trigmon.mq.enums import UnitOutcome
from trigmon.mq.errors import CfNotAvailable, ConnectionBroken, MQError, NoMsgAvailable, ObjectInUse
from trigmon.mq.event_kinds import EVENT_QUEUE
from trigmon.mq.replies import Values

INITQ = "SYSTEM.DEFAULT.INITIATION.QUEUE"
TRIGGERED = {"trigger_control": "on", "trigger_type": "first", "initiation_q_name": INITQ, "process_name": "P"}


@pytest.fixture
def three(daemon):
    """Three members with one shared queue Q, which all of them know."""
    made = members(daemon, "QM1", "QM2", "QM3")
    share(made[0], "Q")
    sees(*made, q_name="Q")
    return made


def triggered(*some):
    """The shared queue Q triggers on each of these members, all of which serve their initiation queue."""
    share(some[0], "Q", **TRIGGERED)
    sees(*some, q_name="Q")
    for one in some:
        with one.connect() as qm:
            define(qm, "P", "PROCESS", appl_id="true")


class TestWhatOneDoesTheOthersSee:
    def test_a_get_that_waits_on_one_is_answered_by_a_put_on_another(self, three):
        answer = aside(lambda: get(three[1], "Q"))
        waits(three[1])
        with three[0].connect() as qm:
            qm.put("Q", b"from QM1")
        assert answer.result(20).data == b"from QM1"

    def test_a_get_is_answered_when_another_backs_out(self, three):
        with three[0].connect() as qm:
            qm.put("Q", b"m")
            with qm.open("Q", "input_shared") as q:
                q.get(syncpoint=True)
                answer = aside(lambda: get(three[2], "Q"))
                waits(three[2])
                qm.backout()
            found = answer.result(20)
        assert (found.data, found.backout_count) == (b"m", 1)

    def test_each_member_whose_initiation_queue_is_served_gets_a_trigger_message(self, daemon):
        three = members(daemon, "QM1", "QM2", "QM3")
        triggered(*three)
        monitors = [aside(lambda one=one: get(one, INITQ)) for one in three]
        for one in three:
            waits(one)
        with three[0].connect() as qm:
            qm.put("Q", b"m")
        for monitor in monitors:
            assert b"Q" in monitor.result(20).data

    def test_nobody_is_triggered_while_one_has_it_open_exclusively(self, daemon):
        three = members(daemon, "QM1", "QM2", "QM3")
        triggered(*three)
        monitor = aside(lambda: get(three[1], INITQ))
        waits(three[1])
        with three[2].connect() as holder, three[0].connect() as qm:
            with holder.open("Q", "input_exclusive"):
                with pytest.raises(ObjectInUse):
                    qm.open("Q", "input_shared")
                until(lambda: [use["exclusive"] for use in group_of(three[1])["queues"][0]["members"]] == [True])
                qm.put("Q", b"m")
                until(lambda: depth(three[1], "Q") == 1)
                with three[1].connect() as asking:
                    explained = asking.explain("Q")
                assert "open exclusively through QM3" in str(explained)
                assert not monitor.done()
            # Condition 12: the last reader has closed, and a message waits.
            assert b"Q" in monitor.result(20).data

    def test_a_definition_of_the_group_reaches_every_member_also_one_that_comes_later(self, daemon):
        chosen = settings()
        first, second = members(daemon, "QM1", "QM2", chosen=chosen)
        with first.connect() as qm:
            define(qm, "COPIED", qsg_disp="group", description="for all")
        (third,) = members(daemon, "QM3", chosen=chosen)

        def copy(one):
            with one.connect() as qm:
                try:
                    with qm.open("COPIED", "inquire") as q:
                        return q.inquire("description", "qsg_disp")
                except MQError:
                    return None

        for one in (first, second, third):
            found = until(lambda one=one: copy(one))
            assert found["description"] == "for all"
            assert str(found["qsg_disp"]).lower() == "copy"


class TestMonitorsOfMembers:
    def test_a_put_on_one_starts_the_program_on_each_other_that_has_a_monitor(self, daemon, tmp_path):
        chosen = settings()
        (first,) = members(daemon, "QM1", chosen=chosen)
        others = members(daemon, "QM2", "QM3", chosen=chosen, with_monitor=True)
        triggered(first, *others)
        for one in others:
            with one.connect() as qm:
                qm.call(Alter(object_type="PROCESS", name="P", attributes={"appl_id": f"touch {tmp_path}/{one.name}"}))
                until(lambda qm=qm: qm.ask(Status(), Values).values["waiting_gets"])
        with first.connect() as qm:
            qm.put("Q", b"m")
        until(lambda: sorted(path.name for path in tmp_path.iterdir()) == ["QM2", "QM3"])

    def test_a_monitor_goes_on_when_its_member_has_come_back(self, daemon, tmp_path):
        first, second = members(daemon, "QM1", "QM2", with_monitor=True)
        triggered(first, second)
        with second.connect() as qm:
            qm.call(Alter(object_type="PROCESS", name="P", attributes={"appl_id": f"touch {tmp_path}/again"}))
        second.process.send_signal(signal.SIGSTOP)
        first.wait_for_event("a dead member was recovered")
        second.process.send_signal(signal.SIGCONT)
        until(lambda: len(second.events("ready")) == 2)
        with first.connect() as qm:
            qm.put("Q", b"m")
        until(lambda: (tmp_path / "again").exists())
        assert len(second.events("monitor started")) == 1


class TestTheGroupOnDisplay:
    def test_it_shows_the_members_their_queues_and_where_they_are_open(self, three):
        with three[1].connect() as qm, qm.open("Q", "input_shared", "output"):
            qm.put("Q", b"m")
            until(lambda: depth(three[0], "Q") == 1)
            shown = three[0].trigmon("group")
            reported = json.loads(three[0].trigmon("group", "--output", "json").stdout)
        assert shown.returncode == 0, shown.stderr
        assert [(row["name"], row["state"], row["pid"]) for row in reported["members"]] == [
            (one.name, "serving", one.process.pid) for one in three
        ]
        assert {row["host"] for row in reported["members"]} == {os.uname().nodename}
        (queue,) = reported["queues"]
        assert (queue["name"], queue["current_q_depth"]) == ("Q", 1)
        assert [(use["member"], use["open_input_count"], use["open_output_count"]) for use in queue["members"]] == [
            ("QM2", 1, 1)
        ]
        assert "QM2 input 1 output 1" in shown.stdout

    def test_explain_says_through_which_member_a_shared_queue_is_read(self, three):
        with three[1].connect() as qm, qm.open("Q", "input_shared"):
            until(lambda: group_of(three[0])["queues"][0]["members"])
            with three[0].connect() as asking:
                values = asking.explain("Q").values
        assert values["group"] == "QSG1"
        assert values["readers"] == [{"q_mgr_name": "QM2", "open_input_count": 1, "exclusive": False}]


class TestAMemberThatDies:
    def test_its_puts_are_gone_its_gets_are_back_and_its_handles_are_closed(self, three):
        with three[0].connect() as qm:
            qm.put("Q", b"kept")
        lost = three[1].connect()
        lost.put("Q", b"never committed", syncpoint=True)
        reading = lost.open("Q", "input_exclusive")
        assert reading.get(syncpoint=True).data == b"kept"
        three[1].kill()
        died = time.monotonic()
        lost.drop()

        def back():
            try:
                return get(three[0], "Q", wait_interval_ms=0)
            except (NoMsgAvailable, ObjectInUse):
                return None

        found = until(back)
        assert time.monotonic() - died < LEASE_S + 10
        assert (found.data, found.backout_count) == (b"kept", 1)
        with pytest.raises(NoMsgAvailable):
            get(three[2], "Q", wait_interval_ms=0)
        events = [event for one in three[::2] for event in one.events("a dead member was recovered")]
        assert [event["member"] for event in events] == ["QM2"]
        (recovered,) = group_of(three[0])["recovered"]
        assert (recovered["name"], recovered["puts"], recovered["gets"]) == ("QM2", 1, 1)
        assert recovered["by"] in ("QM1", "QM3")
        assert [row["state"] for row in group_of(three[0])["members"]] == ["serving", "dead", "serving"]
        three[1].start()
        assert [row["state"] for row in group_of(three[0])["members"]] == ["serving"] * 3
        assert three[1].stop() == 0
        until(lambda: [row["state"] for row in group_of(three[0])["members"]] == ["serving", "away", "serving"])

    def test_who_recovers_it_reports_it(self, three):
        for one in three:
            with one.connect() as qm:
                qm.call(Alter(object_type="QMGR", name=one.name, attributes={"trigmon_event": "enabled"}))
        three[1].kill()
        reported = []

        def is_reported():
            for one in three[::2]:
                with one.connect() as qm, qm.open(EVENT_QUEUE, "input_shared") as q:
                    told = [json.loads(message.data) for message in q.drain()]
                reported.extend((one.name, event) for event in told if event["event"] == "member_lost")
            return reported

        until(is_reported)
        ((by, event),) = reported
        (recovered,) = group_of(three[0])["recovered"]
        assert (event["member"], event["group"], event["q_mgr_name"]) == ("QM2", GROUP, by)
        assert (recovered["name"], recovered["by"]) == ("QM2", by)

    def test_it_comes_back_when_it_is_started_again(self, three):
        epoch = group_of(three[0])["members"][1]["epoch"]
        three[1].kill()
        three[1].start()
        with three[1].connect() as qm:
            qm.put("Q", b"again")
        assert get(three[0], "Q").data == b"again"
        assert group_of(three[0])["members"][1]["epoch"] > epoch

    def test_one_that_ends_in_order_is_away_and_nothing_needs_to_be_recovered(self, three):
        assert three[1].stop() == 0
        state = until(lambda: [row["state"] for row in group_of(three[0])["members"]] == ["serving", "away", "serving"])
        assert state
        assert not three[0].events("a dead member was recovered") + three[2].events("a dead member was recovered")

    def test_what_it_did_for_all_another_does(self, three):
        """Looking for expired messages of shared queues is one member's."""
        for one in three:
            with one.connect() as qm:
                qm.call(Alter(object_type="QMGR", name=one.name, attributes={"expiry_interval": 1}))

        def looks():
            return [row["name"] for row in group_of(first)["members"] if "EXPIRY" in row["roles"]]

        first = three[0]
        (holder,) = until(looks)
        lost = {one.name: one for one in three}[holder]
        first = next(one for one in three if one is not lost)
        lost.kill()
        until(lambda: looks() and looks() != [holder])
        with first.connect() as qm:
            qm.put("Q", b"short-lived", expiry_tenths=1)
        until(lambda: depth(first, "Q") == 0)

    def test_a_second_process_of_its_name_waits_until_it_is_gone(self, daemon):
        chosen = settings()
        (first,) = members(daemon, "QM1", chosen=chosen)
        (second,) = members(daemon, "QM1", chosen=chosen, start=False)
        second.launch()
        why = second.wait_for_event("standing by")["why"]
        assert why == f"process {first.process.pid} on {os.uname().nodename} is QM1 of the group QSG1"
        first.kill()
        second.wait_until_ready()


class TestAMemberThatTakesLongToStart:
    def test_it_comes_up_though_that_is_longer_than_its_lease(self, daemon):
        chosen = settings(lease_s=1)
        (first,) = members(daemon, "QM1", chosen=chosen)
        reading, objects = os.pipe()  # its definitions end when this test has written them
        (slow,) = members(daemon, "QM2", chosen=chosen | {"qmgr.definitions": f"/dev/fd/{reading}"}, start=False)
        slow.launch(pass_fds=[reading])
        os.close(reading)
        with os.fdopen(objects, "w") as writing:
            began_s = time.monotonic()
            until(lambda: len(group_of(first)["members"]) == 2 and time.monotonic() > began_s + 3)
            assert [row["state"] for row in group_of(first)["members"]] == ["serving", "serving"]
            writing.write("- qlocal: Q1\n")
        slow.wait_until_ready()
        assert not first.events("a dead member was recovered")


class TestAMemberThatStandsStill:
    def test_it_is_fenced_says_so_and_comes_back_as_a_new_member(self, three):
        paused = three[1]
        client = paused.connect()
        client.put("Q", b"never committed", syncpoint=True)
        paused.process.send_signal(signal.SIGSTOP)
        try:
            until(lambda: [one for one in three[::2] if one.events("a dead member was recovered")])
        finally:
            paused.process.send_signal(signal.SIGCONT)
        with pytest.raises(ConnectionBroken, match="given up for dead by the group QSG1"):
            client.commit()
        paused.wait_for_event("fenced from the group; it comes back as a new member")
        until(lambda: len(paused.events("ready")) == 2)
        with paused.connect() as again:
            assert again.outcome(1, client.client_id) is not UnitOutcome.COMMITTED
            again.put("Q", b"alive")
        assert get(three[0], "Q").data == b"alive"
        with pytest.raises(NoMsgAvailable):
            get(three[0], "Q", wait_interval_ms=0)


class TestAMemberThatStandsStillInItsTurn:
    def test_it_does_not_take_the_others_with_it(self, daemon, server):
        """What it holds in the middle of a turn is free before the leases of those who wait for it are over."""
        chosen = settings(server.dsn)
        first, second, third = members(daemon, "QM1", "QM2", "QM3", chosen=chosen)
        share(first, "Q", max_q_depth=999_999)
        sees(first, second, third, q_name="Q")
        stop_within_a_turn(second, server, chosen["group.postgres_schema"])
        until(lambda: [one for one in (first, third) if one.events("a dead member was recovered")])
        second.process.send_signal(signal.SIGCONT)
        until(lambda: len(second.events("ready")) == 2)
        for one in (first, third):
            with one.connect() as qm:
                qm.put("Q", b"m")
        recovered = [event["member"] for one in (first, third) for event in one.events("a dead member was recovered")]
        assert recovered == ["QM2"]
        assert len(first.events("ready")) == len(third.events("ready")) == 1

    def test_nor_does_one_that_takes_nothing_of_a_long_answer(self, daemon, server):
        """It is not idle in its turn then: what was asked is still being sent."""
        chosen = settings(server.dsn)
        first, second = members(daemon, "QM1", "QM2", chosen=chosen)
        share(first, "Q")
        sees(first, second, q_name="Q")
        with first.connect() as qm:
            for _ in range(8):
                qm.put("Q", bytes(4_000_000))
        stop_within_an_answer(second, server, chosen["group.postgres_schema"])
        first.wait_for_event("a dead member was recovered", timeout_s=60)
        until(lambda: serves(first))
        second.process.send_signal(signal.SIGCONT)
        until(lambda: len(second.events("ready")) == 2)
        assert len(first.events("ready")) == 1


def serves(one):
    """Whether it takes a message: it may still say that it waits for the database."""
    with contextlib.suppress(CfNotAvailable), one.connect() as qm:
        return bool(qm.put("Q", b"m"))


def stop_within_an_answer(one, server, schema):
    """Stops a member while its session is being sent more than it has taken yet."""
    is_over = threading.Event()

    def read():
        with contextlib.suppress(MQError), one.connect() as qm:
            while not is_over.is_set():
                with qm.open("Q", "input_shared") as q:
                    q.get(syncpoint=True)
                qm.backout()

    aside(read)
    asked = sql.SQL("SELECT a.wait_event FROM pg_stat_activity a JOIN {} m ON m.backend = a.pid WHERE m.name = %s")
    with psycopg.connect(server.dsn, autocommit=True) as db:

        def is_caught():
            one.process.send_signal(signal.SIGSTOP)
            time.sleep(0.01)  # the socket is full by then, or there is nothing to send
            if db.execute(asked.format(sql.Identifier(schema, "member")), (one.name,)).fetchone() == ("ClientWrite",):
                return True
            one.process.send_signal(signal.SIGCONT)
            return False

        until(is_caught)
    is_over.set()


def stop_within_a_turn(one, server, schema):
    """Stops a member while its session has a transaction open."""
    is_over = threading.Event()

    def put():
        with contextlib.suppress(MQError), one.connect() as qm:
            while not is_over.is_set():
                qm.put("Q", b"m", persistence="persistent")

    loading = aside(put)
    asked = sql.SQL(
        "SELECT FROM pg_stat_activity a JOIN {} m ON m.backend = a.pid "
        "WHERE m.name = %s AND a.state = 'idle in transaction'"
    ).format(sql.Identifier(schema, "member"))

    def is_within():
        one.process.send_signal(signal.SIGSTOP)
        time.sleep(0.02)  # what was sent is done
        if asking.execute(asked, (one.name,)).fetchone() is not None:
            return True
        one.process.send_signal(signal.SIGCONT)
        return False

    with psycopg.connect(server.dsn, autocommit=True) as asking:
        until(is_within)
    is_over.set()
    assert not loading.done()

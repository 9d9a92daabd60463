"""trigmon top: what each part of the screen shows, and what may go wrong."""

import signal
import time

import pytest
from msgspec.structs import replace

from tests.console.top_in_test import PATIENCE_S, console, said
from tests.daemons import define
from trigmon.console.top_dialogs import QuestionScreen
from trigmon.mq.calls import BridgeState, Controls, CopyState, ReportCopy, Runs, Status
from trigmon.mq.errors import CfNotAvailable

# -- what it shows --------------------------------------------------------------------------------------------


def test_a_queue_manager_in_order_needs_nothing(machine):
    machine.queue("ORDERS", "GOOD")

    async def act(it):
        assert it.shows("QM1", "up ", "1 monitor", "0 messages", "runs 0 now, 0 ok / 0 bad in 24 h", " free")
        assert it.shows("nothing")
        assert it.shows("ORDERS", "first on")
        machine.qm.put("ORDERS", b"one")
        await it.until(lambda: it.shows("ORDERS", " ok ", "1/0"))
        await it.until(lambda: it.shows("1 ok / 0 bad in 24 h"))

    console(machine.daemon, act)


def test_what_needs_attention_is_first_and_red_with_the_command_that_helps(machine):
    machine.queue("BROKEN", "BAD")
    machine.queue("ZERO")

    async def act(it):
        machine.qm.put("BROKEN", b"one")
        await it.until(lambda: it.shows("failing", "BROKEN", "1 message waits, and nobody reads"))
        assert it.shows("NEEDS 1", "OBJECT")
        assert it.shows("> trigmon runs logs --queue BROKEN")
        assert it.shows("ValueError: cannot parse b'bad'")
        cell = it.app.query_one("#attention").get_cell_at((0, 0))
        assert (str(cell), cell.style) == ("failing", "red")
        assert it.app.query_one("#queues").get_cell_at((0, 0)).style == ""
        assert [row.key for row in it.app.query_one("#queues")._shown] == ["BROKEN", "ZERO"]
        with machine.qm.open("BROKEN", "input_shared") as queue:
            queue.get()
        await it.until(lambda: it.shows("nothing"))
        assert not it.shows("NEEDS 1")

    console(machine.daemon, act)


def test_what_runs_is_shown_with_its_messages_and_cancelled_by_a_key(machine):
    machine.queue("EVENTS", "SLOW")

    async def act(it):
        assert not it.app.query_one("#running").display
        machine.qm.put_many("EVENTS", [b"m"] * 3)
        await it.until(lambda: it.shows("SLOW", "EVENTS", "1 of 3"))
        assert it.shows("EVENTS", "now 1")
        (run,) = machine.qm.call(Runs(where={"state": "serving"})).rows
        await it.choose("running", run["run_id"])
        await it.press("x")
        assert isinstance(it.app.screen, QuestionScreen)
        await it.press(*"wrong", "enter")
        await it.until(lambda: run["run_id"] not in [row.key for row in it.app.query_one("#running")._shown])
        ended = machine.qm.call(Runs(where={"run_id": run["run_id"]})).rows[0]
        assert (ended["state"], ended["cancel_reason"]) == ("cancelled", "wrong")

    console(machine.daemon, act)


def test_copies_and_initiation_queues_elsewhere_are_shown_as_long_as_they_are_reported(shared_daemon):
    copy = CopyState(name="PAYROLL@QM9", q_name="IN", copied=1200, rate=40.5, left=7, lag_ms=2000, last_copy_ms=5_000)
    served, hindered = BridgeState("PROD", "ONE@QM9", since_ms=1), BridgeState("PROD", "TWO@QM9", "MQCONNX: 2538", 1)

    async def act(it):
        assert not it.app.query_one("#copies").display
        assert not it.app.query_one("#bridges").display
        with shared_daemon.connect() as one, shared_daemon.connect() as other:
            one.call(ReportCopy(state=copy))
            other.call(Controls(monitor="m:1", bridges=[served, hindered]))
            await it.until(lambda: it.shows("PAYROLL@QM9", "IN", "copying", "1 200", "40", " 7 ", "2.0 s"))
            assert it.shows("COPY", "QUEUE", "STATE", "COPIED", "A SECOND", "LEFT", "BEHIND", "LAST")
            await it.until(lambda: it.shows("PROD", "ONE@QM9", "served") and it.shows("PROD", "TWO@QM9", "hindered"))
            bridges = it.app.query_one("#bridges")
            assert [bridges.get_cell_at((row, 0)).style for row in (0, 1)] == ["", "red"]
            await it.choose("bridges", "TWO@QM9")
            await it.press("e")
            assert said(it).startswith("TWO@QM9 is a bridge: this key is for a queue")
            one.call(ReportCopy(state=replace(copy, problem="2042", rate=0.0, left=-1)))
            await it.until(lambda: it.shows("PAYROLL@QM9", "hindered", "-"))
            assert it.app.query_one("#copies").get_cell_at((0, 0)).style == "red"
        await it.until(lambda: not it.app.query_one("#copies").display and not it.app.query_one("#bridges").display)

    console(shared_daemon, act)


@pytest.mark.parametrize("width", [100, 140])
def test_no_column_is_cut_in_a_terminal_of_100_columns(machine, width):
    machine.queue("A.QUEUE.WITH.A.VERY.LONG.NAME.OF.48.CHARACTERS.X", "SLOW")
    machine.queue("BROKEN", "BAD")

    async def act(it):
        machine.qm.put_many("A.QUEUE.WITH.A.VERY.LONG.NAME.OF.48.CHARACTERS.X", [b"m"] * 3)
        machine.qm.put("BROKEN", b"one")
        await it.until(lambda: it.shows("failing", "BROKEN") and it.shows("1 of 3"))
        for table in it.app.query("Table"):
            widths = [column.width for column in table.ordered_columns]
            assert sum(widths) <= width - 1
            assert not table.show_horizontal_scrollbar
            for row in table._shown:
                sizes = [max(map(len, cell.split("\n"))) for cell in row.cells]
                assert all(size < room for size, room in zip(sizes, widths, strict=True)), row
        for head in ("QUEUE", "DEPTH", "OLDEST", "READERS", "IN/MIN", "OUT/MIN", "TRIGGER", "LAST RUN", "OK/BAD 24H"):
            assert it.shows(head)
        assert max(map(len, it.lines())) <= width
        assert it.shows("l logs", "e explain", "p pause", "r resume", "s start", "x cancel", "d dead letters", "q quit")

    console(machine.daemon, act, (width, 30))


# -- what may go wrong ----------------------------------------------------------------------------------------


def test_a_queue_manager_that_goes_is_shown_as_gone_and_as_there_again_when_it_is(daemon):
    one = daemon()
    with one.connect() as qm:
        define(qm, "ORDERS")

    async def act(it):
        assert it.shows("ORDERS")
        one.kill()
        await it.until(lambda: it.shows("no answer: "))
        assert it.shows("ORDERS")  # as it was
        before = it.app.overview.started_ms
        one.start()
        await it.until(lambda: it.app.overview.started_ms > before)
        assert not it.shows("no answer")

    console(one, act)


def test_a_member_that_waits_for_its_database_is_what_needs_attention(shared_daemon):
    async def act(it):
        it.app._connection.drop()
        connect, it.app._connect = it.app._connect, raiser(CfNotAvailable("group G waits for its database"))
        await it.until(lambda: it.shows("database", "no call is answered: group G waits for its database"))
        assert it.shows("QM1  answers no call")
        assert it.app.query_one("#attention").get_cell_at((0, 0)).style == "red"
        it.app._connect = connect
        await it.until(lambda: it.shows("QM1", "up "))

    console(shared_daemon, act)


def raiser(error):
    def raises():
        raise error

    return raises


def test_a_queue_manager_that_does_not_answer_stops_no_key(daemon):
    one = daemon()

    async def act(it):
        one.process.send_signal(signal.SIGSTOP)
        try:
            deadline = time.monotonic() + PATIENCE_S
            while not it.shows("no answer for "):  # without a reading of the test's own, which would wait
                assert time.monotonic() < deadline
                await it.pilot.pause(0.1)
            before = it.app.focused
            await it.press("tab")
            assert it.app.focused is not before
        finally:
            one.process.send_signal(signal.SIGCONT)
        await it.until(lambda: not it.shows("no answer"))

    console(one, act)


def test_a_thousand_queues_are_read_with_as_few_calls_as_their_pages(daemon):
    one = daemon()
    with one.connect() as qm:
        for number in range(1000):
            define(qm, f"Q.{number:04}")
        qm.put("Q.0999", b"one")

    async def act(it):
        assert len(it.app.query_one("#queues")._shown) == 1000
        assert it.app.query_one("#queues")._shown[0].key == "Q.0999"
        calls = []
        connection = it.app._connection
        exchange, ahead = connection._exchange, connection._send_ahead
        connection._exchange = lambda call, **more: calls.append(call) or exchange(call, **more)
        connection._send_ahead = lambda call, **more: calls.append(call) or ahead(call, **more)
        await it.until(lambda: any(isinstance(call, Status) for call in calls))
        await it.until(lambda: not it.app._is_reading)
        readings = sum(isinstance(call, Status) for call in calls)
        assert len(calls) <= 10 * (readings + 1)  # one had begun before they were counted

    console(one, act)


def test_the_cursor_stays_on_its_queue_when_others_come_before_it(shared_daemon):
    with shared_daemon.connect() as qm:
        define(qm, "M.QUEUE")

        async def act(it):
            await it.choose("queues", "M.QUEUE")
            define(qm, "A.QUEUE")
            await it.until(lambda: it.shows("A.QUEUE"))
            assert it.app.query_one("#queues").subject.name == "M.QUEUE"

        console(shared_daemon, act)

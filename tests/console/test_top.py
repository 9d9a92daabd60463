"""trigmon top: what each part of the screen shows, and what each key does at the queue manager."""

import asyncio
import signal
import time

import pytest
from msgspec.structs import replace

from tests.daemons import define
from tests.waiting import until
from trigmon.console.overview import read_overview
from trigmon.console.top import Top
from trigmon.console.top_dialogs import QuestionScreen, TextScreen
from trigmon.mq.calls import BridgeState, Controls, CopyState, Pause, Pauses, ReportCopy, Runs, Status
from trigmon.mq.errors import CfNotAvailable
from trigmon.rules.attention import Attention

SIZE = (100, 30)
PATIENCE_S = 120


class Console:
    """The running application with its pilot, and what is on its screen."""

    def __init__(self, app, pilot):
        self.app, self.pilot = app, pilot

    async def until(self, found):
        """Waits until ``found()`` is true, with a new reading each time; returns it."""
        deadline = time.monotonic() + PATIENCE_S
        while not (value := found()):
            assert time.monotonic() < deadline, self.lines()
            await self.app.read()
            await self.pilot.pause()
        return value

    def lines(self):
        """Returns what the terminal shows, a text a line."""
        return [strip.text.rstrip() for strip in self.app.screen._compositor.render_strips()]

    def shows(self, *words):
        """Returns the first line with all of these words; None for none."""
        return next((line for line in self.lines() if all(word in line for word in words)), None)

    async def press(self, *keys):
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def choose(self, table, key):
        """Moves the cursor of a table to the row of a key."""
        widget = self.app.query_one(f"#{table}")
        widget.focus()
        await self.until(lambda: key in [row.key for row in widget._shown])
        widget.move_cursor(row=[row.key for row in widget._shown].index(key))
        await self.pilot.pause()

    async def text(self):
        """Waits for a text over the console, and returns it."""
        await self.until(lambda: isinstance(self.app.screen, TextScreen))
        return self.app.screen.text


def console(daemon, act, size=SIZE):
    """Runs the application against a daemon, and ``act`` with its Console."""

    async def run():
        app = Top(lambda: daemon.connect(timeout_s=5.0), every_s=0.2)
        async with app.run_test(size=size, notifications=True) as pilot:
            it = Console(app, pilot)
            await it.until(lambda: app.overview)
            await pilot.pause()
            await act(it)

    asyncio.run(run())


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


# -- what its keys do -----------------------------------------------------------------------------------------


def test_a_queue_is_paused_with_a_reason_and_resumed(machine):
    machine.queue("ORDERS", "GOOD")

    async def act(it):
        await it.choose("queues", "ORDERS")
        await it.press("p")
        await it.press(*"release", "enter")
        await it.until(lambda: it.shows("ORDERS", "PAUSED"))
        (pause,) = machine.qm.call(Pauses()).rows
        assert (pause["what"], pause["name"], pause["reason"]) == ("queue", "ORDERS", "release")
        await it.until(lambda: it.shows("paused", "ORDERS") and it.shows("release"))
        await it.press("r")
        await it.until(lambda: it.shows("ORDERS", "first on"))
        assert machine.qm.call(Pauses()).rows == []

    console(machine.daemon, act)


def test_a_question_that_is_left_changes_nothing(machine):
    machine.queue("ORDERS", "GOOD")

    async def act(it):
        await it.choose("queues", "ORDERS")
        for key in ("p", "s"):
            await it.press(key, "escape")
            assert not isinstance(it.app.screen, QuestionScreen)
        assert machine.qm.call(Pauses()).rows == machine.qm.call(Runs()).rows == []

    console(machine.daemon, act)


@pytest.mark.parametrize(("what", "name"), [("process", "GOOD"), ("everything", "")])
def test_a_pause_of_a_process_or_of_everything_is_ended_from_its_finding(machine, what, name):
    machine.qm.call(Pause(what=what, name=name, reason="a release"))

    async def act(it):
        await it.choose("attention", f"paused {what} {name or what}")
        await it.press("r")
        await it.until(lambda: it.shows("nothing"))
        assert machine.qm.call(Pauses()).rows == []

    console(machine.daemon, act)


def test_a_pause_of_a_queue_and_of_a_process_of_one_name_are_two_findings_each_ended_by_itself(machine):
    machine.queue("GOOD", "GOOD")
    for what in ("process", "queue"):
        machine.qm.call(Pause(what=what, name="GOOD", reason="a release"))

    async def act(it):
        await it.choose("attention", "paused process GOOD")
        await it.choose("attention", "paused queue GOOD")
        await it.press("r")
        await it.until(lambda: len(machine.qm.call(Pauses()).rows) == 1)
        assert [row["what"] for row in machine.qm.call(Pauses()).rows] == ["process"]
        await it.choose("attention", "paused process GOOD")
        await it.press("r")
        await it.until(lambda: it.shows("nothing"))

    console(machine.daemon, act)


def said(it):
    """Returns all remarks of the console."""
    return " ".join(each.message for each in it.app._notifications)


def test_a_key_on_a_finding_about_a_process_acts_on_no_queue_of_that_name(machine):
    machine.queue("GOOD", "GOOD")
    machine.queue("ORDERS", "GOOD")
    machine.qm.put("ORDERS", b"one")
    until(lambda: read_overview(machine.qm).runs_ok)
    machine.qm.call(Pause(what="process", name="GOOD", reason="a release"))

    async def act(it):
        await it.choose("attention", "paused process GOOD")
        for key in ("s", "e", "x"):
            it.app.clear_notifications()
            await it.press(key)
            assert not isinstance(it.app.screen, QuestionScreen | TextScreen)
            assert said(it) == "GOOD is a process: this key is for a queue"
        await it.press("l")
        assert "of GOOD for ORDERS: exited" in await it.text()
        await it.press("escape")
        it.app.clear_notifications()
        await it.press("p", *"again", "enter")
        await it.until(lambda: "process GOOD" in said(it))  # it is paused already
        assert [(row["what"], row["name"]) for row in machine.qm.call(Pauses()).rows] == [("process", "GOOD")]
        assert len(machine.qm.call(Runs()).rows) == 1

    console(machine.daemon, act)


@pytest.mark.parametrize("key", ["l", "e", "s", "x", "p", "r"])
def test_a_key_on_a_finding_about_a_spark_server_says_that_it_does_nothing(shared_daemon, key):
    async def act(it):
        server = Attention("spark_server", "local[2]", "it ended", "look", what="server")
        reading, it.app.read = it.app.read, nothing
        while it.app._is_reading:  # one that began before would show what there is
            await it.pilot.pause(0.01)
        it.app.overview = replace(it.app.overview, attention=[server])
        it.app._show()
        it.app.query_one("#attention").focus()
        await it.press(key)
        assert said(it).startswith("local[2] is a server: this key is for a queue")
        it.app.read = reading

    console(shared_daemon, act)


async def nothing():
    """Reads nothing."""


def test_two_findings_of_one_kind_and_object_are_both_shown(machine):
    async def act(it):
        server = Attention("spark_server", "local[2]", "it ended", "look", what="server")
        it.app.overview = replace(it.app.overview, attention=[server, server])
        it.app._show()
        assert len({row.key for row in it.app.query_one("#attention")._shown}) == 2

    console(machine.daemon, act)


def test_a_process_is_started_without_a_trigger_when_the_user_says_yes(machine):
    machine.queue("ORDERS", "GOOD")

    async def act(it):
        await it.choose("queues", "ORDERS")
        await it.press("s", "enter")
        await it.until(lambda: it.shows("ORDERS", "1/0"))
        assert len(machine.qm.call(Runs()).rows) == 1

    console(machine.daemon, act)


def test_what_is_refused_is_shown_and_the_console_goes_on(machine):
    machine.queue("PLAIN")

    async def act(it):
        await it.choose("queues", "PLAIN")
        await it.press("s", "enter")
        await it.until(lambda: it.app._notifications and it.shows("PLAIN"))
        assert "names no process" in " ".join(each.message for each in it.app._notifications)
        await it.press("x")
        assert it.app.overview is not None

    console(machine.daemon, act)


def test_explain_and_logs_are_shown_until_they_are_left(machine):
    machine.queue("BROKEN", "BAD")

    async def act(it):
        machine.qm.put("BROKEN", b"one")
        await it.choose("attention", "failing queue BROKEN")
        await it.press("e")
        text = await it.text()
        assert "A put on BROKEN with priority 0 would" in text
        assert it.shows("explain BROKEN")
        await it.press("escape", "l")
        text = await it.text()
        assert "it begins" in text and "ValueError: cannot parse b'bad'" in text and "ended with status 1" in text
        await it.press("q")
        assert it.shows("failing", "BROKEN")

    console(machine.daemon, act)


def test_dead_letters_are_shown_and_so_is_what_was_put_aside(machine):
    machine.queue("ASIDE")
    machine.queue("ORDERS", backout_requeue_q_name="ASIDE")
    machine.qm.put("ASIDE", b"a bad one")

    async def act(it):
        await it.choose("attention", "put_aside queue ASIDE")
        await it.press("d")
        text = await it.text()
        assert text.startswith("1 on ASIDE") and "a bad one" in text
        await it.press("escape")
        await it.choose("queues", "ORDERS")
        await it.press("d")
        await it.until(lambda: it.app._notifications or isinstance(it.app.screen, TextScreen))

    console(machine.daemon, act)


def test_q_ends_it(machine):
    async def act(it):
        await it.press("q")
        assert it.app._exit

    console(machine.daemon, act)


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

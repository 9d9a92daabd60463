"""trigmon top: what each key does at the queue manager."""

import pytest
from msgspec.structs import replace

from tests.console.top_in_test import console, said
from tests.waiting import until
from trigmon.console.overview import read_overview
from trigmon.console.top_dialogs import QuestionScreen, TextScreen
from trigmon.mq.calls import Pause, Pauses, Runs
from trigmon.rules.attention import Attention


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
        await it.app.workers.wait_for_complete()  # a reading that was planned before would show what there is
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

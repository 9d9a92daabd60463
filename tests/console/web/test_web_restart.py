"""The web console beside a queue manager that restarts, goes, or waits for its database."""

from __future__ import annotations

import pytest

from tests.console.web.test_web_pages import events
from tests.daemons import define
from tests.members import members, settings
from tests.waiting import until
from trigmon.mq.calls import Delete


@pytest.fixture
def one(daemon):
    made = daemon()
    with made.connect() as qm:
        define(qm, "Q")
    return made


@pytest.mark.parametrize("how", ["stopped", "killed"])
def test_the_first_action_after_a_restart_is_done(one, web_of, how):
    web = web_of(one, "--allow-actions")
    for _ in range(8):  # so each of its threads has a connection
        fields = web.get("/queues/Q").fields("/actions/pause-queue")
    one.stop() if how == "stopped" else one.kill()
    one.start()
    answer = web.post("/actions/pause-queue", fields | {"text": "upkeep"})
    assert answer.status == 303, answer.plain
    with one.connect() as qm:
        assert [pause["reason"] for pause in qm.explain("Q").values["pauses"]] == ["upkeep"]


def test_the_events_of_a_run_that_is_not_on_record_are_not_found(one, web_of):
    web = web_of(one)
    for path, about in (("runs/GONE", "RUN(GONE)"), ("queues/GONE", "GONE")):
        answer = web.get(f"/events/{path}")
        assert (answer.status, about in answer.plain) == (404, True)


def test_a_queue_that_goes_while_a_page_is_live_is_shown_as_gone(one, web_of):
    web = web_of(one)
    web.enter()

    def is_gone(name, text):
        if name == "part":
            with one.connect() as qm:
                qm.call(Delete(object_type="QLOCAL", name="Q"))
        return name == "away" and "MQRC_UNKNOWN_OBJECT_NAME" in text

    assert events(web, "/events/queues/Q", is_gone)


def test_a_member_that_waits_for_its_database_is_what_needs_attention_and_is_there_again_afterwards(
    daemon, server, web_of
):
    (member,) = members(daemon, "QM1", chosen=settings(server.dsn))
    web = web_of(member)
    assert web.get("/").status == 200
    server.kill()
    page = until(lambda: it if "no call is answered" in (it := web.get("/")).plain else None)
    assert "database" in page.plain.partition("Needs attention")[2]
    assert "make the database answer" in page.plain
    other = web.get("/queues/SYSTEM.DEFAULT.LOCAL.QUEUE")
    assert (other.status, "2345" in other.plain, "tries again" in other.plain) == (503, True, True)
    server.start()
    until(lambda: "no call is answered" not in web.get("/").plain)

"""What the forms of the web console do, sent as a browser sends them."""

from __future__ import annotations

import json
import re
import socket
from urllib.parse import quote, urlencode

import pytest

from tests.console.web.populated import DEADQ
from tests.daemons import define
from tests.waiting import until
from trigmon.mq.calls import Alter, DeadLetters, Delete, Display, Pause, Pauses, Resume
from trigmon.mq.replies import Listing, Sifted


@pytest.fixture
def qm(populated):
    with populated.daemon.connect() as connection:
        yield connection


def followed(web, answer):
    """Returns the page that an action leads to."""
    assert answer.status == 303, answer.plain
    return web.get(answer.headers["location"])


def rehearsal(web, **group):
    return web.get("/dead-letters/rehearse?" + "&".join(f"{name}={quote(str(text))}" for name, text in group.items()))


def test_a_queue_is_paused_with_a_reason_and_resumed(actor, qm):
    fields = actor.get("/queues/PLAIN").fields("/actions/pause-queue")
    page = followed(actor, actor.post("/actions/pause-queue", fields | {"text": "upkeep & more"})).plain
    assert "PLAIN is paused" in page
    assert qm.explain("PLAIN").values["pauses"][0]["reason"] == "upkeep & more"
    assert "upkeep & more" in page
    again = actor.post("/actions/pause-queue", fields)
    assert (again.status, "queue PLAIN paused by" in again.plain) == (409, True)
    fields = actor.get("/queues/PLAIN").fields("/actions/resume-queue")
    assert "PLAIN is resumed" in followed(actor, actor.post("/actions/resume-queue", fields)).plain
    assert not qm.explain("PLAIN").values["pauses"]


def test_to_resume_a_queue_ends_no_pause_of_a_process_of_that_name(actor, qm):
    define(qm, "SAME")
    define(qm, "SAME", "PROCESS", appl_id="true", tmc_argument="no")
    for what in ("process", "queue"):
        qm.call(Pause(what=what, name="SAME", reason="upkeep"))
    fields = actor.get("/queues/SAME").fields("/actions/resume-queue")
    assert actor.post("/actions/resume-queue", fields).status == 303
    assert [row["what"] for row in qm.ask(Pauses(), Listing).rows if row["name"] == "SAME"] == ["process"]
    again = actor.post("/actions/resume-queue", fields)
    assert (again.status, "queue SAME is not paused" in again.plain) == (409, True)
    qm.call(Resume(what="process", name="SAME"))


def test_what_was_done_is_shown_once(actor):
    fields = actor.get("/queues/PLAIN").fields("/actions/pause-queue")
    path = actor.post("/actions/pause-queue", fields).headers["location"]
    assert "PLAIN is paused;" in actor.get(path).plain
    assert "PLAIN is paused;" not in actor.get(path).plain
    assert actor.post("/actions/resume-queue", fields).status == 303


def test_a_queue_that_is_held_is_resumed_from_the_overview_and_its_run_is_cancelled(actor, populated, qm):
    held = until(lambda: populated.run_of("FAILS", "held"))
    fields = actor.get(f"/runs/{held['run_id']}").fields("/actions/cancel-run")
    page = followed(actor, actor.post("/actions/cancel-run", fields | {"text": "no longer"})).plain
    assert "cancelled" in page
    assert populated.run_of("FAILS", "cancelled")["cancel_reason"] == "no longer"
    fields = actor.get("/").fields("/actions/resume-queue")
    assert fields["queue"] == "FAILS"
    assert "FAILS is resumed" in followed(actor, actor.post("/actions/resume-queue", fields)).plain
    assert not qm.explain("FAILS").values["pauses"]


def test_a_run_that_has_ended_is_started_again(actor, populated):
    before = populated.run_of("ORDERS")["run_id"]
    fields = actor.get(f"/runs/{before}").fields("/actions/retry-run")
    assert "is to run again" in followed(actor, actor.post("/actions/retry-run", fields)).plain
    until(lambda: populated.run_of("ORDERS")["run_id"] != before and populated.run_of("ORDERS")["end_ms"])
    assert populated.run_of("ORDERS")["repeats"] == before


def test_the_process_of_a_queue_is_started_without_a_message(actor, populated):
    before = populated.run_of("ORDERS")["run_id"]
    fields = actor.get("/queues/ORDERS").fields("/actions/start-process")
    assert "P.DRAIN is to run for ORDERS" in followed(actor, actor.post("/actions/start-process", fields)).plain
    until(lambda: populated.run_of("ORDERS")["run_id"] != before and populated.run_of("ORDERS")["end_ms"])
    assert 'action="/actions/start-process"' not in actor.get("/queues/PLAIN").text


def test_a_run_that_has_ended_cannot_be_cancelled(actor, populated):
    run_id = until(lambda: populated.run_of("ORDERS", "exited"))["run_id"]
    csrf = actor.get("/queues/PLAIN").fields("/actions/pause-queue")["csrf"]
    answer = actor.post("/actions/cancel-run", {"csrf": csrf, "run": run_id})
    assert (answer.status, 'role="alert"' in answer.text) == (409, True)


def test_a_group_of_dead_letters_is_returned_after_a_rehearsal_and_no_more_than_that(actor, qm):
    for name in ("BACK", "OTHER"):
        define(qm, name, backout_requeue_q_name="ASIDE" if name == "BACK" else "")
    define(qm, "ASIDE")
    for number in range(5):
        qm.put("ASIDE", f"number {number}")
    page = rehearsal(actor, queue="ASIDE", dest="BACK", reason=0, error="", what="retry")
    assert "5 messages of ASIDE would be returned" in page.plain
    assert "5 to BACK" in page.plain
    assert qm.explain("ASIDE").values["current_q_depth"] == 5
    fields = page.fields("/actions/dead-letters")
    qm.put("ASIDE", "one that came later")
    assert "5 messages returned from ASIDE" in followed(actor, actor.post("/actions/dead-letters", fields)).plain
    depths = [qm.explain(name).values["current_q_depth"] for name in ("ASIDE", "BACK")]
    assert depths == [1, 5]
    for name in ("ASIDE", "BACK", "OTHER"):
        qm.call(Delete(object_type="QLOCAL", name=name, purge=True))


def test_what_has_no_way_back_goes_where_a_person_says_and_what_is_refused_stays(actor, qm):
    define(qm, "LOST")
    define(qm, "FULL", max_q_depth=1)
    for _ in range(3):
        qm.put("LOST", "one")
    nowhere = rehearsal(actor, queue="LOST", dest="", reason=0, error="", what="retry")
    assert "3 would stay: it has no header" in nowhere.plain
    assert 'action="/actions/dead-letters"' not in nowhere.text
    page = rehearsal(actor, queue="LOST", dest="", reason=0, error="", what="retry", to="FULL")
    done = followed(actor, actor.post("/actions/dead-letters", page.fields("/actions/dead-letters"))).plain
    assert "1 message returned from LOST. 2 stay: MQRC_Q_FULL (2053)" in done
    for name in ("LOST", "FULL"):
        qm.call(Delete(object_type="QLOCAL", name=name, purge=True))


def test_a_group_is_discarded_after_a_rehearsal(actor, qm):
    row = qm.ask(DeadLetters(), Sifted).rows[0]
    group = {"queue": DEADQ, "dest": row["dest_q_name"], "reason": row["reason"], "error": "", "what": "discard"}
    page = rehearsal(actor, **group)
    assert f"3 messages of {DEADQ} would be deleted for good" in page.plain
    done = followed(actor, actor.post("/actions/dead-letters", page.fields("/actions/dead-letters"))).plain
    assert f"3 messages discarded from {DEADQ}" in done
    assert qm.explain(DEADQ).values["current_q_depth"] == 0


@pytest.mark.parametrize(
    "change", [{"count": "9"}, {"newest_ms": "9"}, {"what": "discard"}, {"ticket": ""}, {"to": "PLAIN"}]
)
def test_what_was_not_rehearsed_is_not_done(actor, qm, change):
    fields = rehearsal(actor, queue="PLAIN", dest="", reason=0, error="", what="retry", to="ALIAS").fields(
        "/actions/dead-letters"
    )
    assert actor.post("/actions/dead-letters", fields | change).status == 400
    assert qm.explain("PLAIN").values["current_q_depth"] == 12


@pytest.mark.parametrize("given", [{"what": "burn"}, {"reason": "x"}, {"reason": "9" * 30}, {"queue": ""}])
def test_a_rehearsal_of_nothing_is_refused(actor, given):
    group = {"queue": "PLAIN", "dest": "", "reason": "0", "error": "", "what": "retry"} | given
    assert rehearsal(actor, **group).status == 400


def test_a_rehearsed_change_of_a_queue_is_saved_and_only_on_what_was_looked_at(actor, qm):
    page = actor.get("/rehearse?queue=PLAIN&max_q_depth=30&trigger_type=every&trigger_data=it%27s")
    fields = page.fields("/actions/alter-queue")
    assert "ALTER QLOCAL(PLAIN) TRIGTYPE(EVERY) TRIGDATA('it''s') MAXDEPTH(30)" in page.plain
    shown = followed(actor, actor.post("/actions/alter-queue", fields)).plain
    assert "PLAIN is altered." in shown
    assert "12 of 30" in shown
    row = qm.ask(Display(object_type="QLOCAL", name="PLAIN"), Listing).rows[0]
    assert (row["max_q_depth"], row["trigger_type"], row["trigger_data"]) == (30, "every", "it's")
    again = actor.post("/actions/alter-queue", fields | {"max_q_depth": "40"})
    assert (again.status, "altered meanwhile" in again.plain) == (409, True)
    unknown = actor.post("/actions/alter-queue", fields | {"altered_ms": str(row["altered_ms"]), "max_q_depth": "-1"})
    assert unknown.status == 409
    assert qm.ask(Display(object_type="QLOCAL", name="PLAIN"), Listing).rows[0]["max_q_depth"] == 30


def sent_form(web, page, **changed):
    """Sends the form of the rehearsal as a browser does: with every field, of which a person has changed some."""
    fields = page.fields("/rehearse")
    was = json.loads(fields["was"])
    assert changed.keys() <= was.keys()
    return web.get("/rehearse?" + urlencode(fields | was | changed))


def test_a_form_changes_nothing_but_what_a_person_has_changed_on_it(actor, qm):
    define(qm, "FORM", trigger_data="mine", max_q_depth=10)
    page = actor.get("/rehearse?queue=FORM")
    qm.call(Alter(object_type="QLOCAL", name="FORM", attributes={"trigger_data": "another's", "max_q_depth": 20}))
    answer = sent_form(actor, page, def_priority="7")
    address = answer.headers["location"]
    assert re.fullmatch(r"/rehearse\?queue=FORM&altered_ms=\d+&def_priority=7", address)
    page = followed(actor, answer)
    assert "ALTER QLOCAL(FORM) DEFPRTY(7)" in page.plain
    assert 'role="alert">FORM was altered meanwhile' in page.text
    assert actor.post("/actions/alter-queue", page.fields("/actions/alter-queue")).status == 303
    row = qm.ask(Display(object_type="QLOCAL", name="FORM"), Listing).rows[0]
    assert (row["def_priority"], row["trigger_data"], row["max_q_depth"]) == (7, "another's", 20)
    again = followed(actor, sent_form(actor, actor.get("/rehearse?queue=FORM&def_priority=5"), def_priority="7"))
    assert "ALTER" not in again.plain  # back to what it is
    assert "altered meanwhile" not in again.plain
    wrong = actor.get("/rehearse?queue=FORM&was=nonsense")
    assert wrong.status == 400
    qm.call(Delete(object_type="QLOCAL", name="FORM"))


def test_a_user_without_the_right_sees_the_reason(daemon, web_of):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        where = f"127.0.0.1:{free.getsockname()[1]}"
    one = daemon(settings={"server.tcp": where})
    web = web_of(one, "--allow-actions", env={"TRIGMON_QMGR": f"tcp://{where}"})
    name = "SYSTEM.DEFAULT.LOCAL.QUEUE"
    fields = web.get(f"/queues/{name}").fields("/actions/pause-queue")
    answer = web.post("/actions/pause-queue", fields)
    assert (answer.status, "MQRC_NOT_AUTHORIZED" in answer.plain) == (403, True)

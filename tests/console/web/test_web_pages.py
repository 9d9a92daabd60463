"""What the pages of the web console show, asked for as a browser does."""

from __future__ import annotations

import json
import re
import socket
from urllib.parse import quote

import pytest
from msgspec.structs import replace

from tests.console.web.populated import DEADQ, INITQ
from tests.daemons import define
from tests.waiting import until
from trigmon.console.overview import read_overview
from trigmon.console.web.overview_page import shown_queues
from trigmon.console.web.queue_page import read_queue
from trigmon.mq.calls import BridgeState, Controls, CopyState, Delete, Pause, RecordRun, ReportCopy, Resume


def events(web, path, wanted, **headers):
    """Returns the server-sent events up to the first that fits, as (name, text)."""
    found = []
    with socket.create_connection(web.host.split(":"), 60) as link:
        lines = [f"GET {path} HTTP/1.1", f"Host: {web.host}", f"Cookie: {web.cookie}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        link.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        stream = link.makefile("r", encoding="utf-8", newline="\n")
        name, text = "", []
        for line in stream:
            kind, _, value = line.rstrip("\r\n").partition(": ")
            if kind == "event":
                name = value
            elif kind == "data":
                text.append(value)
            elif name and not line.strip():
                found.append((name, "\n".join(text)))
                if wanted(*found[-1]):
                    return found
                name, text = "", []
    return found


def test_the_overview_shows_what_needs_attention_the_queues_and_the_runs(reader):
    page = reader.get("/").plain
    for text in ("held FAILS", "3 dead letters", "1 message put aside", "no such column", "trigmon queue resume FAILS"):
        assert text in page
    assert re.search(r"\bP\.WAIT WAITS\b", page)
    assert "SYSTEM.DEFAULT" not in page
    assert "read-only" in page


def test_of_very_many_queues_those_in_use_are_shown(populated):
    with populated.daemon.connect() as qm:
        row = next(each for each in read_overview(qm).queues if not each.depth)
    idle = [replace(row, name=f"A{number:04}") for number in range(300)]
    used = [
        replace(row, name="Z.DEEP", depth=1),
        replace(row, name="Z.FAILED", failed=1),
        replace(row, name="Z.READ", readers=1),
    ]
    shown = shown_queues([*idle, *used])
    assert len(shown) == 200
    assert [each.name for each in shown] == sorted(each.name for each in shown)
    assert {each.name for each in used} <= {each.name for each in shown}


def test_a_queue_is_found_by_its_name(reader):
    answer = reader.get("/queues?name=A%2FODD%25NAME")
    assert (answer.status, answer.headers["location"]) == (303, "/queues/A%2FODD%25NAME")
    assert reader.get("/queues?name=").headers["location"] == "/"
    assert reader.get("/queues?name=//evil.example").headers["location"] == "/queues/%2F%2Fevil.example"


def test_a_queue_shows_its_state_its_messages_and_its_definition(reader):
    page = reader.get("/queues/PLAIN").plain
    assert "12 of 20" in page
    assert page.count("not persistent") >= 10
    assert "6, 7, 8 and 9 do not hold" in page
    assert "max_q_depth MAXDEPTH 20" in page
    assert re.search(r"The last ones ✗ .* ago .*put by test, pid \d+ \(put\)", page)


def test_data_of_messages_is_not_even_read_where_it_is_withheld(populated):
    with populated.daemon.connect() as qm:
        withheld = read_queue(qm, "PLAIN", show_data=False).messages
        shown = read_queue(qm, "PLAIN", show_data=True).messages
    assert [message.data for message in withheld] == [None] * 10
    assert [message.length for message in withheld] == [len(message.data) for message in shown]
    assert [message.msg_id for message in withheld] == [message.msg_id for message in shown]


def test_the_conditions_are_ticks_and_crosses_with_words_for_a_screen_reader(reader):
    text = reader.get("/queues/PLAIN").text
    assert 'role="img" aria-label="holds">✓' in text
    assert 'role="img" aria-label="does not hold">✗' in text
    assert 'role="img" aria-label="does not apply"' in text


def test_a_queue_that_triggers_shows_its_runs_and_how_the_last_ended(reader, populated):
    page = reader.get("/queues/ORDERS").plain
    assert "would write a trigger message" in page
    assert populated.run_of("ORDERS")["run_id"] in page
    assert "ended with status 1: cannot parse a bad order" in page


def test_a_queue_whose_last_run_took_nothing_says_so_and_what_helps(daemon, web_of):
    one = daemon()
    web = web_of(one)
    with one.connect() as qm:
        define(qm, "IDLE", "PROCESS", appl_id="true")
        define(qm, "LEFT", trigger_control="on", trigger_type="first", process_name="IDLE", initiation_q_name=INITQ)
        qm.put("LEFT", b"one")
        now_ms = read_overview(qm).now_ms
        record = {"state": "exited", "exit_status": 0, "q_name": "LEFT", "recorded_ms": now_ms, "end_ms": now_ms}
        qm.call(RecordRun(run_id="idle", record=record))
    page = web.get("/queues/LEFT").plain
    how = "without having opened the queue for input and took no message"
    assert f"Run idle: the last run ended with status 0 {how}" in page
    assert "remedy: then start it for what is left: trigmon process start IDLE --queue LEFT" in page


def test_any_name_and_any_type_of_queue_has_its_page(reader):
    assert "A/ODD%NAME" in reader.get(f"/queues/{quote('A/ODD%NAME', safe='')}").plain
    assert "base_q_name TARGET PLAIN" in reader.get("/queues/ALIAS").plain


def test_what_is_not_there_is_404_with_the_way_to_what_is(reader):
    for path in ("/queues/NONE", "/runs/0123456789abcdef", "/rehearse?queue=NONE", "/none", "/static/none"):
        assert reader.get(path).status == 404
    assert "trigmon queue list shows what there is" in reader.get("/queues/NONE").plain
    assert reader.get("/rehearse?queue=ALIAS").status == 400


def test_the_first_sample_of_the_depth_is_there_and_says_since_when(reader):
    page = until(lambda: (found := reader.get("/queues/PLAIN")) and "most 12" in found.plain and found)
    assert re.search(r"A sample a minute since \d\d:\d\d UTC", page.plain)
    assert "<polyline" in page.text


def test_a_run_shows_its_timeline_its_counts_its_verdict_and_its_output(reader, populated):
    run = populated.run_of("FAILS", "exited")
    page = reader.get(f"/runs/{run['run_id']}")
    assert "✗ failed" in page.plain
    assert re.search(
        r"due .* ago .*started after [\d.]+ m?s pid \d+ opened - first row - drained - ended after", page.plain
    )
    assert "no program has the queue open for input" in page.plain
    assert re.search(r'<pre class="output" id="stderr"[^>]*>\nno such column\n</pre>', page.text)
    assert f"pid {run['pid']}" in page.plain


def test_the_output_of_a_run_that_goes_on_is_streamed_and_goes_on_behind_what_was_seen(reader, populated):
    run_id = populated.run_of("WAITS")["run_id"]
    page = reader.get(f"/runs/{run_id}")
    path = re.search(r'data-events="([^"]*)"', page.text).group(1)
    shown = re.search(r'id="stdout"[^>]*>\n(.*?)</pre>', page.text, re.DOTALL).group(1)
    seen = events(reader, path, lambda name, text: name == "output")
    first = json.loads(seen[-1][1])
    assert first["stream"] == "stdout"
    numbers = [int(number) for number in re.findall(r"line (\d+)\n", shown + first["text"])]
    assert numbers == list(range(numbers[0], numbers[-1] + 1))
    again = events(reader, f"/events/runs/{run_id}", lambda name, text: name == "output", Last_Event_ID="0,0")
    assert json.loads(again[-1][1])["text"].startswith("line 1\n")


def test_a_spark_run_shows_its_stages_while_it_runs_and_links_to_its_page_of_a_driver_alone(daemon, web_of):
    one = daemon()
    seen = {"stages": 4, "stages_done": 3, "tasks": 9, "tasks_done": 7, "rows_read": 10, "rows_written": 5}
    record = {"state": "serving", "q_name": "Q", "appl_id": "load.py", "application_id": "app-1", "progress": seen}
    web = web_of(one)
    with one.connect() as qm:
        qm.call(RecordRun(run_id="spark1", record=record | {"ui": "http://127.0.0.1:4040"}))
        qm.call(RecordRun(run_id="spark2", record=record | {"ui": "javascript:alert(1)"}))
    page = web.get("/runs/spark1")
    assert "stages 3/4, tasks 7/9, rows 10 in, 5 out" in page.plain
    assert '<progress max="4" value="3" aria-label="Stages done">' in page.text
    assert '<a href="http://127.0.0.1:4040" rel="noreferrer noopener">' in page.text
    assert "javascript:" not in web.get("/runs/spark2").text
    with one.connect() as qm:
        qm.call(RecordRun(run_id="spark3", record=record | {"state": "exited", "exit_status": 0}))
    ended = web.get("/runs/spark3")
    assert "app-1" in ended.plain
    assert "stages" not in ended.plain.lower()


def test_a_run_whose_files_are_not_here_shows_the_end_of_its_errors_from_the_record(daemon, web_of):
    one = daemon()
    record = {"state": "exited", "exit_status": 3, "q_name": "Q", "directory": "/none/here", "stderr_tail": "no room"}
    web = web_of(one)
    with one.connect() as qm:
        qm.call(RecordRun(run_id="far", record=record))
    page = web.get("/runs/far").plain
    assert "/none/here is not on this host; from the record:" in page
    assert "stderr no room" in page


def test_the_runs_are_counted_by_hour_and_filtered(reader, populated):
    page = reader.get("/runs")
    assert "1 ok, 5 bad" in page.plain
    assert page.text.count("<rect") >= 24
    failed = reader.get("/runs?outcome=failed").plain
    assert populated.run_of("FAILS", "exited")["run_id"] in failed
    assert populated.run_of("WAITS")["run_id"] not in failed
    drained = reader.get("/runs?process=P.DRAIN").plain
    assert "1 ok, 1 bad" in drained
    assert populated.run_of("FAILS")["run_id"] not in drained
    assert populated.run_of("WAITS")["run_id"] in reader.get("/runs?outcome=open").plain
    old = reader.get("/runs?day=2020-01-01").plain
    assert "0 ok, 0 bad" in old
    assert "None." in old
    assert reader.get("/runs?day=nonsense&before=nonsense").status == 200


def test_the_list_ends_with_the_last_24_hours_unless_any_day_or_what_has_not_ended_is_asked_for(daemon, web_of):
    one = daemon()
    web = web_of(one)
    with one.connect() as qm:
        for run_id, state in (("0a", "exited"), ("0b", "serving")):
            qm.call(RecordRun(run_id=run_id, record={"state": state, "q_name": "Q", "recorded_ms": 1}))
    ended, serving = "/runs/0a", "/runs/0b"
    lists = {query: web.get(f"/runs{query}").text for query in ("", "?day=any", "?outcome=open", "?day=2020-01-01")}
    shown = {query: (ended in text, serving in text) for query, text in lists.items()}
    assert shown == {
        "": (False, False),
        "?day=any": (True, True),
        "?outcome=open": (False, True),
        "?day=2020-01-01": (False, False),
    }


@pytest.mark.parametrize("day", ["0001-01-01", "1970-01-01", "1970-01-02", "9998-12-31", "9999-12-31"])
def test_a_day_that_has_no_begin_or_end_is_none(reader, day):
    page = reader.get(f"/runs?day={day}")
    assert page.status == 200
    assert (f">{day}</option>" in page.text) == ("1970-01-01" < day < "9999")


def test_a_finding_about_no_queue_is_no_link(reader, populated):
    with populated.daemon.connect() as qm:
        define(qm, "ONLYP", "PROCESS", appl_id="true", tmc_argument="no")
        qm.call(Pause(what="process", name="ONLYP", reason="upkeep"))
        try:
            page = until(lambda: it if "ONLYP" in (it := reader.get("/")).text else None)
        finally:
            qm.call(Resume(what="process", name="ONLYP"))
    assert "/queues/ONLYP" not in page.text
    part = page.text[page.text.index('id="part-attention"') : page.text.index('id="part-running"')]
    links = re.findall(r'href="([^"]*)"', part)
    assert "/queues/FAILS" in links
    assert {reader.get(link).status for link in links} == {200}


def test_a_queue_is_held_or_paused_whatever_the_reason_says(reader, populated):
    with populated.daemon.connect() as qm:
        qm.call(Pause(what="queue", name="PLAIN", reason="a file held since noon"))
        try:
            page = until(lambda: it if "a file held since noon" in (it := reader.get("/")).text else None)
            shown = {row.name: row for row in read_overview(qm).queues}
        finally:
            qm.call(Resume(what="queue", name="PLAIN"))
    assert "PLAIN paused 12" in page.plain
    assert "FAILS held 1" in page.plain
    assert (shown["PLAIN"].held, shown["FAILS"].held) == (False, True)


def test_the_overview_shows_each_schedule_and_each_watch_and_what_came_of_it(reader, populated, tmp_path):
    with populated.daemon.connect() as qm:
        define(qm, "TIMED", process_name="NOT.DEFINED", initiation_q_name=INITQ)
        define(qm, "OFTEN", "SCHEDULE", every_s=1, q_name="TIMED")
        define(qm, "NIGHTLY", "SCHEDULE", cron="0 2 * * *", process_name="ONLYP")
        define(qm, "INCOMING", "WATCH", directory=str(tmp_path), pattern="*.csv", q_name="TIMED", quiet_s=0)
        (tmp_path / "one.csv").write_text("1")
        qm.call(Pause(what="schedule", name="NIGHTLY", reason="upkeep"))
        wanted = [
            r"OFTEN schedule every 1s TIMED \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC 6 does not hold: 6 ",
            r"NIGHTLY schedule 0 2 \* \* \* UTC, process ONLYP - paused -",
            rf"INCOMING watch {re.escape(str(tmp_path))}/\*\.csv TIMED watching one\.csv \d{{4}}-",
        ]
        try:
            page = until(lambda: it if all(re.search(each, (it := reader.get("/")).plain) for each in wanted) else None)
        finally:
            for kind, name in (("SCHEDULE", "OFTEN"), ("SCHEDULE", "NIGHTLY"), ("WATCH", "INCOMING")):
                qm.call(Delete(object_type=kind, name=name))
            until(lambda: 'id="part-timed" data-part hidden' in reader.get("/").text)
    part = page.text[page.text.index('id="part-timed"') :]
    assert "/queues/TIMED" in part
    assert '<span class="bad">6 does not hold' in part
    assert re.search(r'title="[^"]*upkeep"', part)


def test_the_overview_shows_each_copy_of_a_queue_elsewhere_as_long_as_it_is_reported(reader, populated):
    state = CopyState(
        name="ORDERS@PROD", q_name="PLAIN", copied=1200, rate=40.5, left=7, lag_ms=2000, last_copy_ms=5_000
    )
    with populated.daemon.connect() as qm:
        qm.call(ReportCopy(state=state))
        shown = "ORDERS@PROD copy 1200 copied, 40.5 a second, 7 left there, 2.0 s behind PLAIN copying"
        until(lambda: shown in reader.get("/").plain, 60)
        qm.call(ReportCopy(state=replace(state, problem="MQCONNX to PROD: 2538", problem_since_ms=5_000)))
        until(lambda: "PLAIN hindered MQCONNX to PROD: 2538" in reader.get("/").plain, 60)
    until(lambda: "ORDERS@PROD" not in reader.get("/").plain, 60)


def test_the_overview_shows_each_initiation_queue_elsewhere_and_what_hinders_it(reader, populated):
    states = [BridgeState("PROD", "ONE@QM9"), BridgeState("PROD", "TWO@QM9", "MQCONNX to QM9: 2538", 5_000)]
    with populated.daemon.connect() as qm:
        qm.call(Controls(monitor="m:1", bridges=states))
        page = until(lambda: it if "ONE@QM9" in (it := reader.get("/")).plain else None, 60)
    assert "ONE@QM9 bridge bridge PROD, monitor m:1 - served -" in page.plain
    assert "TWO@QM9 bridge bridge PROD, monitor m:1 - hindered MQCONNX to QM9: 2538 1970-01-01" in page.plain
    assert '<span class="bad">hindered</span>' in page.text
    until(lambda: "ONE@QM9" not in reader.get("/").plain, 60)


def test_dead_letters_are_grouped_by_queue_and_error(reader):
    page = reader.get("/dead-letters").plain
    assert f"{DEADQ} 3 messages" in page
    assert "3 SYSTEM.DEFAULT.INITIATION.QUEUE it is no valid trigger message" in page
    assert "1 ORDERS it was got from ORDERS and backed out once BACKOUT_THRESHOLD_REACHED" in page


def test_a_rehearsal_shows_conditions_lint_and_what_saving_would_do_and_changes_nothing(reader, populated):
    before = reader.get("/queues/ORDERS").plain.partition("Definition")[2]
    page = reader.get("/rehearse?queue=ORDERS&trigger_type=depth&trigger_depth=5&backout_threshold=0").plain
    assert "ALTER QLOCAL(ORDERS) TRIGTYPE(DEPTH) TRIGDPTH(5) BOTHRESH(0)" in page
    assert "Then: A put on ORDERS with priority 0 would NOT write a trigger message: 3 does not hold." in page
    assert "Saving itself would write no trigger message." in page
    new = page.partition("Lint New")[2].partition("Attributes")[0]
    assert "depth-without-rearming" in new
    assert "backout-requeue-without-threshold" in new
    assert "--allow-actions" in page
    assert reader.get("/queues/ORDERS").plain.partition("Definition")[2] == before
    wrong = reader.get("/rehearse?queue=ORDERS&trigger_depth=0")
    assert (wrong.status, "TRIGDPTH" in wrong.plain) == (200, True)
    assert 'role="alert"' in wrong.text


def test_a_rehearsal_that_would_fire_by_itself_says_so(reader, populated):
    with populated.daemon.connect() as qm:
        define(qm, "OFF", process_name="P.DRAIN", initiation_q_name="SYSTEM.DEFAULT.INITIATION.QUEUE")
        qm.put("OFF", "one")
        page = reader.get("/rehearse?queue=OFF&trigger_control=on").plain
        qm.call(Delete(object_type="QLOCAL", name="OFF", purge=True))
    assert "Saving itself would write a trigger message, by condition 13." in page


def test_an_overview_that_is_live_follows_what_changes(reader, populated):
    reader.get("/")
    with populated.daemon.connect() as qm:
        define(qm, "NEWCOMER")
        came = events(reader, "/events/overview", lambda name, text: name == "part" and "NEWCOMER" in text)
        qm.call(Delete(object_type="QLOCAL", name="NEWCOMER"))
    gone = events(reader, "/events/overview", lambda name, text: name == "part" and "NEWCOMER" not in text)
    assert came
    assert gone


def test_many_viewers_cost_the_queue_manager_what_one_does(reader, populated):
    reader.get("/")
    links = []
    for _ in range(20):
        link = socket.create_connection(reader.host.split(":"), 60)
        link.sendall(
            f"GET /events/overview HTTP/1.1\r\nHost: {reader.host}\r\nCookie: {reader.cookie}\r\n\r\n".encode()
        )
        assert b"200 OK" in link.recv(64)
        links.append(link)
    listed = populated.daemon.trigmon("connections", "list", "--output", "json").stdout
    ours = [json.loads(line) for line in listed.splitlines() if "trigmon web" in line]
    assert 1 <= len(ours) <= 12  # four threads at most of each of the consoles of this file
    for link in links:
        link.close()


def test_a_queue_manager_that_has_gone_is_reported_and_found_again(daemon, web_of):
    one = daemon()
    web = web_of(one)
    assert web.get("/").status == 200
    one.kill()
    away = web.get("/queues/SYSTEM.DEFAULT.LOCAL.QUEUE")
    assert (away.status, "trigmon run" in away.plain) == (503, True)
    assert 'http-equiv="refresh"' in away.text
    assert events(web, "/events/overview", lambda name, text: name == "away")
    one.start()
    assert until(lambda: web.get("/").status == 200)

"""Dead letters on the command line, against a real daemon."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys

import pytest

from tests.cli.conftest import Trigmon, objects
from trigmon.client.connection import Connection
from trigmon.mq.calls import Status
from trigmon.mq.descriptors import DeadLetterHeader, TriggerMessage, date_and_time, pack_dlh, pack_tm
from trigmon.mq.replies import Values

DLQ = "SYSTEM.DEAD.LETTER.QUEUE"
HOUR_MS = 3_600_000


@pytest.fixture
def did(trigmon: Trigmon, qm: Connection):
    """``did("ALTER ...")``: MQSC that has to succeed; the dead-letter queue is empty before and after."""

    def run(*lines: str) -> None:
        result = trigmon("mqsc", input="\n".join(lines) + "\n")
        assert result.exit_code == 0, result.stdout

    run(f"ALTER QMGR DEADQ({DLQ})", f"CLEAR QLOCAL({DLQ})")
    yield run
    run(f"CLEAR QLOCAL({DLQ})")


def dead(qm: Connection, body: bytes, to: str, reason: int = 2053, age_ms: int = 0, format_: str = "MQSTR") -> str:
    """Returns a dead letter; its message id as the command line writes it."""
    now = int(qm.ask(Status(), Values).values["now_ms"])
    date, time = date_and_time(now - age_ms)
    header = DeadLetterHeader(
        reason=reason, dest_q_name=to, dest_q_mgr_name=qm.q_mgr_name, format=format_, put_date=date, put_time=time
    )
    return qm.put(DLQ, pack_dlh(header) + body, format="MQDEAD").msg_id.hex()


def poison(qm: Connection, queue: str, body: str = "bad", times: int = 2) -> None:
    """Backs a message out so often, and tries to get it once more."""
    qm.put(queue, body)
    with qm.open(queue, "input_shared") as source:
        for _ in range(times):
            source.get(syncpoint=True)
            qm.backout()
        with pytest.raises(Exception, match="NO_MSG_AVAILABLE"):
            source.get()


def test_poison_is_listed_shown_and_returned(trigmon: Trigmon, did, qm: Connection):
    did("DEFINE QLOCAL(DL.P) BOTHRESH(2) BOREQ(QMGR)")
    poison(qm, "DL.P")
    head, row = trigmon("dlq", "list").stdout.splitlines()
    assert head.split() == [
        *("msg_id", "dead_time", "reason_name", "dest_q_name", "backout_count", "put_appl_name", "length"),
    ]
    assert row.split()[4:7] == ["BACKOUT_THRESHOLD_REACHED", "DL.P", "2"]
    shown = trigmon("dlq", "show").stdout
    assert re.search(r"^why +it was got from DL.P and backed out 2 times$", shown, re.M)
    assert f"then: trigmon dlq retry --msg-id {row.split()[0]}\n" in shown
    assert re.search(r"^data +bad$", shown, re.M)
    done = trigmon("dlq", "retry", "--reason", "2362")
    assert (done.exit_code, done.stdout) == (0, f"1 message returned from {DLQ}\n")
    assert trigmon("get", "DL.P").stdout == "bad\n"


@pytest.mark.parametrize("mark", ["..", "…"])
def test_the_end_of_an_id_names_a_message_that_no_other_ends_like(trigmon: Trigmon, did, qm: Connection, mark):
    ids = [qm.put(DLQ, b"x", msg_id=each * 23 + b"\x77").msg_id.hex() for each in (b"\x01", b"\x02")]
    end = ids[1][-6:]
    assert trigmon("dlq", "show", "--msg-id", mark + end).stdout.splitlines()[0].split() == ["msg_id", ids[1]]
    assert "2 messages have an id that ends in" in trigmon("dlq", "show", "--msg-id", mark + "77").stderr
    assert trigmon("dlq", "show", "--msg-id", f"{mark}ffffff").exit_code == 3
    assert trigmon("dlq", "discard", "--msg-id", mark + end, "--yes").exit_code == 0
    assert [row["msg_id"] for row in objects(trigmon("dlq", "list", "--output", "json"))] == [ids[0]]


def test_the_reason_a_program_gave_for_a_message_is_listed_shown_and_gone_when_it_is_returned(
    trigmon: Trigmon, did, qm: Connection
):
    did("DEFINE QLOCAL(DL.R) BOQNAME(DL.R.ASIDE)", "DEFINE QLOCAL(DL.R.ASIDE)")
    qm.put("DL.R", "bad", format="MQSTR")
    why = "ValueError: no airline <XX>, " + "and so on " * 10
    with qm.open("DL.R", "input_shared") as source:
        source.reserve("JOB").reject(0, why)
    aside = ("--queue", "DL.R.ASIDE")
    head, row = trigmon("dlq", "list", *aside).stdout.splitlines()
    assert head.split()[-1] == "said"
    assert "ValueError: no airline <XX>, and so on" in row
    assert row.endswith("…")
    shown = trigmon("dlq", "show", *aside).stdout
    assert re.search(rf"^why +its program set it aside: {re.escape(why.strip())}", shown, re.M)
    assert re.search(r"^data +bad$", shown, re.M)
    (browsed,) = objects(trigmon("browse", "DL.R.ASIDE", "--output", "json"))
    assert (browsed["rejection"]["why"], browsed["rejection"]["q_name"]) == (why, "DL.R")
    assert "rejected from DL.R: ValueError: no airline <XX>" in trigmon("browse", "DL.R.ASIDE").stdout
    assert trigmon("dlq", "retry", *aside).stdout == "1 message returned from DL.R.ASIDE\n"
    (back,) = objects(trigmon("get", "DL.R", "--output", "json"))
    assert (back["data"], back["format"]) == ("bad", "MQSTR")
    assert "rejection" not in back


def test_each_poison_message_has_its_line_in_the_log_and_one_without_a_way_one_a_minute(
    trigmon: Trigmon, did, qm: Connection, shared_daemon
):
    did("DEFINE QLOCAL(DL.L) BOTHRESH(1) BOREQ(QMGR)")
    poison(qm, "DL.L", times=1)
    (event,) = [line for line in shared_daemon.events("a poison message was put aside") if line["q_name"] == "DL.L"]
    (row,) = objects(trigmon("dlq", "list", "--output", "json"))
    assert (event["to_q_name"], event["msg_id"], event["backout_count"]) == (DLQ, row["msg_id"], 1)
    did("ALTER QMGR DEADQ(' ')")
    qm.put("DL.L", "bad")
    with qm.open("DL.L", "input_shared") as source:
        for _ in range(5):
            source.get(syncpoint=True)
            qm.backout()
    (kept,) = shared_daemon.events("a poison message has nowhere to go and is handed out again")
    assert kept["why"] == "the dead-letter queue: none is named (DEADQ)"


def test_json_has_the_same_with_the_header_and_the_descriptor_apart(trigmon: Trigmon, did, qm: Connection):
    msg_id = dead(qm, b"\xff\x00", "DL.Q", age_ms=HOUR_MS)
    (row,) = objects(trigmon("dlq", "list", "--output", "json"))
    assert (row["msg_id"], row["reason"], row["reason_name"], row["length"]) == (msg_id, 2053, "Q_FULL", 2)
    assert row["dead_time"].endswith("Z")
    (shown,) = objects(trigmon("dlq", "show", "--msg-id", msg_id, "--output", "json"))
    assert shown["dead_letter"]["dest_q_name"] == "DL.Q"
    assert (shown["descriptor"]["format"], shown["descriptor"]["msg_type"]) == ("MQSTR", "datagram")
    assert shown["data_base64"] == "/wA="
    assert shown["why"].startswith("DL.Q did not take it: ")
    assert "raise the limit: trigmon queue alter DL.Q MAXDEPTH=NUMBER; then: trigmon dlq retry" in shown["remedy"]
    assert "data_hex" in trigmon("dlq", "show", "--msg-id", msg_id).stdout


def test_filters_hold_together(trigmon: Trigmon, did, qm: Connection):
    old = dead(qm, b"old", "DL.A", age_ms=2 * HOUR_MS)
    new = dead(qm, b"new", "DL.A")
    other = dead(qm, b"other", "DL.B", reason=266, age_ms=2 * HOUR_MS)

    def listed(*options: str) -> list[str]:
        return [row["msg_id"] for row in objects(trigmon("dlq", "list", *options, "--output", "json"))]

    assert listed() == [old, new, other]
    assert listed("--older-than", "1h") == [old, other]
    assert listed("--since", "90m") == [new]
    assert listed("--reason", "TM_ERROR") == listed("--reason", "mqfb_tm_error") == [other]
    assert listed("--reason", "MQRC_TM_ERROR") == []
    assert listed("--dest", "DL.A", "--older-than", "1h") == [old]
    assert listed("--limit", "2") == [old, new]
    assert trigmon("dlq", "discard", "--yes", "--reason", "Q_FULL", "--older-than", "1h").stdout == (
        f"1 message discarded from {DLQ}\n"
    )
    assert listed() == [new, other]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--reason", "BACKOUT_TRESHOLD_REACHED"], "did you mean 'BACKOUT_THRESHOLD_REACHED'?"),
        (["--reason", "0"], "no reason"),
        (["--msg-id", "xyz"], "up to 48 hexadecimal digits"),
        (["--older-than", "soon"], "no time such as 30s"),
    ],
)
def test_what_is_no_filter_is_a_usage_error(trigmon: Trigmon, options: list[str], expected: str):
    result = trigmon("dlq", "list", *options)
    assert (result.exit_code, expected in result.stderr) == (2, True)


def test_what_a_queue_refuses_stays_and_is_reported_with_its_reason(trigmon: Trigmon, did, qm: Connection):
    did("DEFINE QLOCAL(DL.SMALL) MAXDEPTH(1)")
    for body in (b"1", b"2", b"3"):
        dead(qm, body, "DL.SMALL")
    dead(qm, b"4", "DL.GONE")
    result = trigmon("dlq", "retry")
    assert (result.exit_code, result.stdout) == (1, f"1 message returned from {DLQ}\n")
    assert "2 messages stay: MQRC_Q_FULL (2053): DL.SMALL: MAXDEPTH(1); get messages" in result.stderr
    assert "1 message stays: MQRC_UNKNOWN_OBJECT_NAME (2085): DL.GONE; trigmon queue list" in result.stderr
    again = trigmon("dlq", "retry", "--output", "json")
    assert again.exit_code == 1
    assert '"messages": 0' in again.stdout and '"reason_name": "Q_FULL"' in again.stdout


def test_a_backout_queue_that_two_queues_name_needs_a_target(trigmon: Trigmon, did, qm: Connection):
    did(
        "DEFINE QLOCAL(DL.ASIDE)",
        *(f"DEFINE QLOCAL(DL.{n}) BOTHRESH(1) BOQNAME(DL.ASIDE) BOREQ(QMGR)" for n in ("ONE", "TWO")),
    )
    poison(qm, "DL.ONE", times=1)
    refused = trigmon("dlq", "retry", "--queue", "DL.ASIDE")
    assert refused.exit_code == 1
    assert "1 message stays: DL.ONE and DL.TWO have BOQNAME(DL.ASIDE); give --to QUEUE" in refused.stderr
    assert "--queue DL.ASIDE --msg-id" in trigmon("dlq", "show", "--queue", "DL.ASIDE").stdout
    done = trigmon("dlq", "retry", "--queue", "DL.ASIDE", "--to", "DL.ONE")
    assert done.stdout == "1 message returned from DL.ASIDE\n"
    assert trigmon("get", "DL.ONE").stdout == "bad\n"
    did("ALTER QLOCAL(DL.TWO) BOQNAME(' ')")
    poison(qm, "DL.ONE", "worse", times=1)
    assert trigmon("dlq", "retry", "--queue", "DL.ASIDE").stdout == "1 message returned from DL.ASIDE\n"


def test_a_dry_run_says_what_would_be_and_does_nothing(trigmon: Trigmon, did, qm: Connection):
    dead(qm, b"1", "DL.A")
    dead(qm, b"2", "DL.A")
    qm.put(DLQ, "plain")
    result = trigmon("dlq", "retry", "--dry-run")
    assert result.stdout == f"2 messages of {DLQ} would be returned: 2 to DL.A\n"
    assert f"1 message would stay: it has no header, and no queue has BOQNAME({DLQ}); give --to QUEUE" in result.stderr
    assert trigmon("dlq", "discard", "--dry-run", "--dest", "DL.A").stdout == (
        f"2 messages of {DLQ} would be discarded\n"
    )
    assert len(objects(trigmon("dlq", "list", "--output", "json"))) == 3


def test_hundreds_go_back_at_once_and_a_limit_holds(trigmon: Trigmon, did, qm: Connection):
    did("DEFINE QLOCAL(DL.MANY)")
    header = DeadLetterHeader(reason=2053, dest_q_name="DL.MANY", dest_q_mgr_name=qm.q_mgr_name)
    qm.put_many(DLQ, [pack_dlh(header) + b"%d" % n for n in range(700)], format="MQDEAD")
    assert trigmon("dlq", "retry", "--limit", "300").stdout == f"300 messages returned from {DLQ}\n"
    assert trigmon("dlq", "retry").stdout == f"400 messages returned from {DLQ}\n"
    got = trigmon("get", "DL.MANY", "--all").stdout.split()
    assert got == [str(n) for n in range(700)]


def test_a_trigger_message_is_shown_by_its_fields(trigmon: Trigmon, did, qm: Connection):
    dead(qm, pack_tm(TriggerMessage(q_name="DL.T", process_name="P")), "INITQ", reason=265, format_="MQTRIG")
    shown = trigmon("dlq", "show").stdout
    assert "the program of its process could not be started" in shown
    assert re.search(r"^trigger_q_name +DL.T$", shown, re.M)


def test_a_header_in_another_byte_order_is_shown_as_it_was_meant(trigmon: Trigmon, did, qm: Connection):
    numbers = b"\0\0\0\x01\0\0\x08\x05"
    texts = b"DL.FAR".ljust(48) + qm.q_mgr_name.encode().ljust(48)
    header = b"DLH " + numbers + texts + b"\0\0\x01\x11\0\0\x04\xb8MQSTR   \0\0\0\x07" + b" " * 44
    qm.put(DLQ, header + b"from afar", format="MQDEAD", encoding=0x111)
    assert re.search(r"^reason_name +Q_FULL$", trigmon("dlq", "show").stdout, re.M)
    (listed,) = objects(trigmon("browse", DLQ, "--output", "json"))
    assert (listed["dead_letter"]["reason"], listed["dead_letter"]["coded_char_set_id"]) == (2053, 1208)


def test_nothing_there_and_nothing_like_it_are_distinguished(trigmon: Trigmon, did):
    empty = trigmon("dlq", "list")
    assert (empty.exit_code, empty.stdout, empty.stderr) == (0, "", f"{DLQ} holds no such message\n")
    assert trigmon("dlq", "show").exit_code == 3
    assert trigmon("dlq", "retry").stdout == f"0 messages returned from {DLQ}\n"
    assert trigmon("dlq", "discard", "--yes").stdout == f"0 messages discarded from {DLQ}\n"
    for words in (["show"], ["retry"], ["retry", "--dry-run"], ["discard", "--yes"]):
        missing = trigmon("dlq", *words, "--msg-id", "ff")
        assert (missing.exit_code, "trigmon dlq list shows" in missing.stderr) == (3, True)
    assert trigmon("dlq", "list", "--queue", "DL.NONE").exit_code == 3
    did("ALTER QMGR DEADQ(' ')")
    nowhere = trigmon("dlq", "list")
    assert (nowhere.exit_code, "ALTER QMGR DEADQ(" in nowhere.stderr) == (3, True)


def test_without_a_terminal_discard_wants_yes(trigmon: Trigmon, did, qm: Connection):
    dead(qm, b"1", "DL.A")
    refused = trigmon("dlq", "discard")
    assert (refused.exit_code, "give --yes or --dry-run" in refused.stderr) == (2, True)
    assert len(objects(trigmon("dlq", "list", "--output", "json"))) == 1


@pytest.mark.parametrize(("answer", "code", "left"), [(b"n\n", 1, 2), (b"y\n", 0, 0)])
def test_on_a_terminal_discard_says_how_many_and_asks(shared_daemon, did, qm: Connection, answer, code, left):
    for body in (b"1", b"2"):
        dead(qm, body, "DL.A")
    here, there = pty.openpty()
    program = subprocess.Popen(
        [sys.executable, "-m", "trigmon", "dlq", "discard"],
        env=shared_daemon.env,
        stdin=there,
        stdout=subprocess.PIPE,
        stderr=there,
    )
    os.close(there)
    os.write(here, answer)
    out, _ = program.communicate(timeout=60)
    asked = os.read(here, 65_536)
    os.close(here)
    assert f"Delete 2 messages of {DLQ} for good?".encode() in asked
    assert program.returncode == code
    assert out == (b"" if left else f"2 messages discarded from {DLQ}\n".encode())
    with qm.open(DLQ, "inquire") as queue:
        assert queue.inquire("current_q_depth")["current_q_depth"] == left


@pytest.mark.parametrize("what", ["retry", "discard"])
def test_an_error_at_once_is_not_called_an_interrupt(trigmon: Trigmon, what):
    refused = trigmon("dlq", what, "--queue", "NOPE", *(["--yes"] if what == "discard" else []))
    assert (refused.exit_code, "2085" in refused.stderr, "interrupted" in refused.stderr) == (3, True, False)

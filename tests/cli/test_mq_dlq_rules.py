"""The rules table of ``runmqdlq``, and the command with a real dead-letter queue."""

from __future__ import annotations

import pytest

from tests.cli.mq_programs import MqPrograms
from trigmon.cli.mq_commands.dlq_rules import RulesTableError, read_table
from trigmon.mq.descriptors import DeadLetterHeader, MessageDescriptor, pack_dlh

TABLE = """\
* as in an example of MQ's manual
inputqm(' ') inputq('my.dlq'), retryint(5) wait(no)

REASON(MQRC_Q_FULL) ACTION(RETRY) RETRY(5)
DESTQ('AAA*') +
* a comment in between
   format (MQSTR), ACTION(FWD) FWDQ(&REPLYQ) FWDQM(&REPLYQM) HEADER(NO)
APPLNAME('ABC-
  D''') PERSIST(MQPER_NOT_PERSISTENT) ACTION(DISCARD)
USERID(?*) ACTION(IGNORE)
FEEDBACK(MQFB_TM_ERROR) MSGTYPE(8) APPLTYPE(MQAT_UNIX) DESTQM(*) ACTION(FWD) FWDQ(LAST)
"""


def header(**fields) -> DeadLetterHeader:
    return DeadLetterHeader(
        **{"reason": 2053, "dest_q_name": "X", "dest_q_mgr_name": "QM1", "format": "MQSTR"} | fields
    )


# -- the table ------------------------------------------------------------------------------------------------


def test_a_table_is_read_as_mqs_conventions_have_it():
    table = read_table(TABLE.splitlines(keepends=True))
    assert (table.input_q, table.input_q_mgr, table.retry_interval_s, table.wait_s) == ("my.dlq", "", 5, 0)
    assert [(rule.line, rule.action, rule.to_q_name, rule.keeps_header, rule.attempts) for rule in table.rules] == [
        (4, "RETRY", "", True, 5),
        (5, "FWD", "&REPLYQ", False, 1),
        (8, "DISCARD", "", True, 1),
        (10, "IGNORE", "", True, 1),
        (11, "FWD", "LAST", True, 1),
    ]
    assert read_table(["ACTION(DISCARD)"])[:4] == ("", "", 60, None)
    assert read_table(["WAIT(90)", "ACTION(DISCARD)"]).wait_s == 90


@pytest.mark.parametrize(
    ("rule", "descriptor", "head", "fits"),
    [
        ("REASON(2053)", {}, {}, True),
        ("REASON(Q_FULL)", {}, {"reason": 2051}, False),
        ("REASON(MQFB_TM_ERROR)", {}, {"reason": 266}, True),
        ("DESTQ(X?)", {}, {}, False),
        ("DESTQ(X?)", {}, {"dest_q_name": "XY"}, True),
        ("DESTQ('X.*') FORMAT(MQSTR)", {}, {"dest_q_name": "X.Y.Z"}, True),
        ("DESTQ('X.*') FORMAT(MQSTR)", {}, {"dest_q_name": "XAY"}, False),
        ("REPLYQ(?*)", {"reply_to_q": "R"}, {}, True),
        ("REPLYQ(?*)", {}, {}, False),
        ("REPLYQ('')", {}, {}, True),
        ("PERSIST(MQPER_PERSISTENT)", {"persistence": 1}, {}, True),
        ("APPLTYPE(MQAT_UNIX)", {"put_appl_type": 7}, {}, False),
        ("USERID(alice), APPLIDAT(*)", {"user_identifier": "alice"}, {}, True),
    ],
)
def test_a_rule_fits_when_all_its_patterns_do(rule: str, descriptor, head, fits: bool):
    (read,) = read_table([f"{rule} ACTION(IGNORE)"]).rules
    assert read.fits(MessageDescriptor(**descriptor), header(**head)) is fits


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "no rule"),
        ("WAIT(NO)", "no rule"),
        ("REASON(2053)", "ACTION is one of"),
        ("ACTION(FWD)", "FWDQ"),
        ("ACTION(RETRY) FWDQ(X)", "go together"),
        ("ACTION(DISCARD) ACTION(RETRY)", "ACTION stands twice"),
        ("ACTION(DISCARD) COLOUR(RED)", "COLOUR is no keyword"),
        ("ACTION(DISCARD) REASON", r"near REASON: KEYWORD\(VALUE\)"),
        ("ACTION(DISCARD) REASON(MQRC_NONSENSE)", "no name that is known"),
        ("ACTION(DISCARD)\nWAIT(NO) ACTION(RETRY)", "line 2: WAIT belongs to the first entry"),
        ("ACTION(RETRY) PUTAUT(CTX)", "PUTAUT is DEF here"),
        ("ACTION(RETRY) RETRY(many)", r"RETRY\(many\)"),
        ("ACTION(RETRY) +", "no further line"),
    ],
)
def test_a_fault_of_the_table_is_named(text: str, told: str):
    with pytest.raises(RulesTableError, match=told):
        read_table(text.splitlines())


# -- the command ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mq(shared_daemon, tmp_path_factory) -> MqPrograms:
    made = MqPrograms(shared_daemon, tmp_path_factory.mktemp("links"))
    names = ("DLQ", "DLQ.TWO", "X", "Y", "R", "LAST")
    script = "".join(f"DEF QL(H.{name})\n" for name in names) + "DEF QL(H.FULL) MAXDEPTH(1)\nALTER QMGR DEADQ(H.DLQ)\n"
    assert made("runmqsc", "QM1", stdin=script).returncode == 0
    return made


def put_dead(mq: MqPrograms, q_name: str, body: str, descriptor=None, **fields) -> None:
    dead = pack_dlh(header(**fields)) + body.encode()
    with mq.daemon.connect() as qm:
        qm.put(q_name, dead, format="MQDEAD", **(descriptor or {}))


def bodies(mq: MqPrograms, q_name: str) -> list[bytes]:
    with mq.daemon.connect() as qm, qm.open(q_name, "browse") as queue:
        return [message.data for message in queue.browse()]


def test_each_message_goes_where_the_first_rule_that_fits_sends_it(mq: MqPrograms):
    put_dead(mq, "H.DLQ", "again", dest_q_name="H.X", descriptor={"correl_id": "c", "priority": 3})
    put_dead(mq, "H.DLQ", "to reply", reason=2035, descriptor={"reply_to_q": "H.R", "reply_to_q_mgr": "QM1"})
    put_dead(mq, "H.DLQ", "waste", reason=266)
    put_dead(mq, "H.DLQ", "kept", reason=2051, format="")
    put_dead(mq, "H.DLQ", "last", reason=2030)
    with mq.daemon.connect() as qm:
        qm.put("H.DLQ", "no header")
    table = """\
wait(no)
reason(MQRC_Q_FULL) action(retry)
replyq(?*) action(fwd) fwdq(&REPLYQ) fwdqm(&REPLYQM) header(no)
reason(MQFB_TM_ERROR) action(discard)
reason(MQRC_PUT_INHIBITED) action(ignore)
action(fwd) fwdq(H.LAST)
"""
    assert mq.lines("runmqdlq", stdin=table) == [
        "AMQ8708I: Dead-letter queue handler started to process INPUTQ(H.DLQ).",
        "AMQ8721W: Dead-letter queue message not prefixed by a valid MQDLH.",
        "AMQ8709I: Dead-letter queue handler ending.",
    ]
    assert bodies(mq, "H.R") == [b"to reply"]
    assert [body[-4:] for body in bodies(mq, "H.LAST")] == [b"last"]
    assert bodies(mq, "H.LAST")[0][:4] == b"DLH "
    assert [body[-4:] for body in bodies(mq, "H.DLQ")] == [b"kept", b"ader"]
    with mq.daemon.connect() as qm, qm.open("H.X", "input_shared") as queue:
        message = queue.get()
    assert (message.data, message.format, message.priority, message.backout_count) == (b"again", "MQSTR", 3, 0)
    assert message.correl_id.rstrip(b"\0") == b"c"


def test_a_rule_is_tried_as_often_as_it_says_then_the_next_one(mq: MqPrograms):
    with mq.daemon.connect() as qm:
        qm.put("H.FULL", "full")
    put_dead(mq, "H.DLQ.TWO", "one", dest_q_name="H.FULL")
    table = "retryint(1) wait(no)\naction(retry) retry(3)\naction(fwd) fwdq(H.Y) header(no)\n"
    told = mq.lines("runmqdlq", "H.DLQ.TWO", "QM1", stdin=table)
    assert [line.partition(": rule of ")[2] for line in told[1:-1]] == [
        "line 2, RETRY: MQRC_Q_FULL (2053): H.FULL: MAXDEPTH(1)",
    ] * 3
    assert (bodies(mq, "H.Y"), bodies(mq, "H.DLQ.TWO")) == ([b"one"], [])


def test_without_a_queue_manager_or_with_a_wrong_table_it_does_not_run(mq: MqPrograms):
    assert mq.lines("runmqdlq", "H.DLQ", "NOBODY", stdin="wait(no)\naction(ignore)\n", status=20) == []
    wrong = mq("runmqdlq", "H.DLQ", "QM1", stdin="action(fly)\n")
    assert (wrong.returncode, "line 1: ACTION is one of" in wrong.stderr) == (20, True)
    assert mq("runmqdlq", "H.NONE", "QM1", stdin="wait(no)\naction(ignore)\n").returncode == 20

"""Dead letters, and what was put aside: looked through, returned to where they came from, or discarded."""

from __future__ import annotations

import pytest

from tests.worlds import World
from trigmon.mq.calls import Alter, Backout, DeadLetters, DiscardDeadLetters, Get, GetMany, Put, RetryDeadLetters, Sieve
from trigmon.mq.descriptors import DeadLetterHeader, MessageDescriptor, date_and_time, pack_dlh, pack_tm
from trigmon.mq.descriptors import TriggerMessage as Tm
from trigmon.mq.enums import GetOption, OpenOption, PutOption, ReportOption
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Refused, Sifted, WasGot

IN, SYNC = OpenOption.INPUT_SHARED, GetOption.SYNCPOINT.value
FULL, POISON = Reason.Q_FULL.value, Reason.BACKOUT_THRESHOLD_REACHED.value


@pytest.fixture
def dlq(world: World) -> str:
    world.define("DLQ")
    world.define("Q")
    world.did(Alter(object_type="QMGR", name="", attributes={"dead_letter_q_name": "DLQ"}))
    return "DLQ"


def dead(world: World, body: bytes, to: str = "Q", reason: int = FULL, q_mgr: str = "QM1", **fields: object) -> bytes:
    """A dead letter as any program may write it."""
    date, time = date_and_time(world.clock.now())
    header = DeadLetterHeader(
        reason=reason,
        dest_q_name=to,
        dest_q_mgr_name=q_mgr,
        format="MQSTR",
        encoding=0x111,
        put_date=date,
        put_time=time,
    )
    reply = world.put("DLQ", pack_dlh(header) + body, **{"format": "MQDEAD", "persistence": 1, **fields})
    return reply.msg_id


def sift(world: World, kind=DeadLetters, **fields: object) -> list[Sifted]:
    """Every slice of a call."""
    answers = [world.did(kind(**fields), "operator")]
    while answers[-1].more:
        answers.append(world.did(kind(**{**fields, "after": answers[-1].after}), "operator"))
    return answers


def rows(world: World, **fields: object) -> list[dict]:
    return [row for answer in sift(world, **fields) for row in answer.rows]


def count(world: World, kind, **fields: object) -> int:
    return sum(answer.count for answer in sift(world, kind, **fields))


def refused(world: World, **fields: object) -> list[tuple[str, str, int]]:
    answers = sift(world, RetryDeadLetters, **fields)
    return [(r["reason_name"], r["about"], r["count"]) for answer in answers for r in answer.refused]


def got(world: World, name: str) -> list[WasGot]:
    handle = world.open(name, IN, as_="looker")
    reply = world.do(GetMany(handle=handle, count=4096), "looker")
    return [] if isinstance(reply, Refused) else reply.messages


def test_a_dead_letter_is_listed_with_why_when_and_where_to(world, dlq):
    world.clock.advance(1_700_000_000_000)
    msg_id = dead(world, b"body", priority=3, expiry=100)
    world.clock.advance(1000)
    (row,) = rows(world)
    assert row == row | {
        "msg_id": msg_id,
        "q_name": "DLQ",
        "reason": 2053,
        "reason_name": "Q_FULL",
        "dest_q_name": "Q",
        "return_q_name": "Q",
        "dead_ms": world.clock.now() - 1000,
        "format": "MQSTR",
        "length": 4,
        "priority": 3,
        "persistence": "persistent",
        "expiry_s": 9.0,
        "backout_count": 0,
    }
    assert "data" not in row
    (whole,) = rows(world, with_data=True)
    assert whole["data"] == b"body"
    assert whole["dead_letter"]["dest_q_mgr_name"] == "QM1"
    assert whole["descriptor"]["format"] == "MQSTR"


def test_a_header_in_another_byte_order_is_read_by_the_descriptors_encoding(world, dlq):
    """Put by a program on a machine that writes the highest byte first."""
    header = (
        b"DLH \0\0\0\x01\0\0\x08\x05"
        + b"Q".ljust(48)
        + b"QM1".ljust(48)
        + b"\0\0\x03\x11\0\0\x01\xf4"
        + b"MQSTR   \0\0\0\x02"
        + b"FAR AWAY".ljust(28)
        + b"2026112112000000"
    )
    world.put("DLQ", header + b"body", format="MQDEAD", encoding=0x311)
    (row,) = rows(world, where=Sieve(reason=FULL), with_data=True)
    assert (row["reason_name"], row["return_q_name"], row["data"]) == ("Q_FULL", "Q", b"body")
    assert row["dead_letter"]["put_appl_type"] == 2
    assert count(world, RetryDeadLetters) == 1
    (back,) = got(world, "Q")
    said = back.descriptor
    assert (back.data, said.format, said.encoding, said.coded_char_set_id) == (b"body", "MQSTR", 0x311, 500)


def test_looking_leaves_everything_where_it_is(world, dlq):
    dead(world, b"body")
    assert rows(world) == rows(world)
    assert world.queue_depth("DLQ") == 1


def test_each_part_of_the_sieve_holds_back_what_does_not_fit(world, dlq):
    world.clock.advance(1_700_000_000_000)
    first = dead(world, b"1")
    world.clock.advance(1000)
    dead(world, b"2", to="OTHER", reason=266)
    world.put("DLQ", b"plain")
    now = world.clock.now()

    def bodies(**where: object) -> list[bytes]:
        return [row["data"] for row in rows(world, with_data=True, where=Sieve(**where))]

    assert bodies() == [b"1", b"2", b"plain"]
    assert bodies(reason=FULL) == [b"1"]
    assert bodies(reason=266) == [b"2"]
    assert bodies(reason=POISON) == []
    assert bodies(dest_q_name="OTHER") == [b"2"]
    assert bodies(msg_id=first) == [b"1"]
    assert bodies(before_ms=now) == [b"1"]
    assert bodies(since_ms=now) == [b"2", b"plain"]
    assert bodies(since_ms=now, reason=FULL) == []


def test_thousands_are_looked_through_in_slices_and_none_is_missed(world, dlq):
    ids = [dead(world, b"%d" % n, priority=n % 3) for n in range(600)]
    answers = sift(world)
    assert {row["msg_id"] for answer in answers for row in answer.rows} == set(ids)
    assert [answer.looked_at for answer in answers] == [256, 256, 88, 0]
    assert answers[0].depth == 600
    few = sift(world, limit=100)
    assert [answer.count for answer in few] == [100] * 6 + [0]
    assert count(world, RetryDeadLetters, limit=100) == 600
    assert (world.queue_depth("DLQ"), world.queue_depth("Q")) == (0, 600)


def test_a_dead_letter_goes_back_as_it_was_before_it_became_one(world, dlq):
    msg_id = dead(world, b"body", priority=3, correl_id=b"c" * 24, expiry=100, reply_to_q="R")
    world.clock.advance(4000)
    assert count(world, RetryDeadLetters) == 1
    (message,) = got(world, "Q")
    md = message.descriptor
    assert (message.data, md.msg_id, md.correl_id, md.format, md.encoding) == (
        b"body",
        msg_id,
        b"c" * 24,
        "MQSTR",
        0x111,
    )
    assert (md.priority, md.persistence, md.expiry, md.reply_to_q, md.put_appl_name) == (3, 1, 60, "R", "app")
    assert world.queue_depth("DLQ") == 0


def poison(world: World, name: str, body: bytes = b"bad", times: int = 1) -> None:
    handle = world.open(name, IN, as_="fails")
    world.put(name, body)
    for unit in range(times):
        world.did(Get(handle=handle, options=SYNC, unit=unit + 1), "fails")
        world.did(Backout(unit=unit + 1), "fails")
    assert isinstance(world.do(Get(handle=handle), "fails"), Refused)
    world.qm.lost([world.session("fails")])


def test_poison_goes_back_from_the_dead_letter_queue_with_a_clean_count(world, dlq):
    world.define("P", backout_threshold=2, backout_requeue="qmgr")
    poison(world, "P", times=2)
    (row,) = rows(world, where=Sieve(reason=POISON))
    assert (row["backout_count"], row["dest_q_name"]) == (2, "P")
    assert count(world, RetryDeadLetters) == 1
    (message,) = got(world, "P")
    assert (message.data, message.descriptor.backout_count) == (b"bad", 0)
    assert message.descriptor.appl_origin_data == ""


def test_poison_goes_back_from_a_backout_queue_to_the_one_queue_that_names_it(world, dlq):
    world.define("ASIDE")
    world.define("ASIDE.ALIAS", "QALIAS", base_q_name="ASIDE")
    world.define("P", backout_threshold=1, backout_requeue="qmgr", backout_requeue_q_name="ASIDE.ALIAS")
    poison(world, "P")
    (row,) = rows(world, q_name="ASIDE.ALIAS", where=Sieve(reason=POISON, dest_q_name="P"))
    assert (row["q_name"], row["return_q_name"], row["backout_count"]) == ("ASIDE", "P", 1)
    assert count(world, RetryDeadLetters, q_name="ASIDE") == 1
    assert [m.data for m in got(world, "P")] == [b"bad"]


@pytest.mark.parametrize("token", [b"", b"of the program"])
def test_when_it_was_put_aside_is_recorded_where_its_program_left_room_and_gone_when_it_goes_back(world, dlq, token):
    world.define("ASIDE")
    world.define("P", backout_threshold=1, backout_requeue="qmgr", backout_requeue_q_name="ASIDE")
    put_ms = world.clock.now()
    handle = world.open("P", OpenOption.OUTPUT, OpenOption.SET_ALL_CONTEXT)
    descriptor = MessageDescriptor(accounting_token=token, put_ms=put_ms)
    world.did(Put(handle=handle, data=b"bad", descriptor=descriptor, options=PutOption.SET_ALL_CONTEXT.value))
    reader = world.open("P", IN)
    world.did(Get(handle=reader, options=SYNC, unit=1))
    world.did(Backout(unit=1))
    world.clock.advance(7 * 86_400_000)
    assert isinstance(world.do(Get(handle=reader)), Refused)
    (row,) = rows(world, q_name="ASIDE")
    assert row["dead_ms"] == (put_ms if token else world.clock.now())
    assert row["put_ms"] == put_ms
    hour_ago = Sieve(before_ms=world.clock.now() - 3_600_000)
    assert len(rows(world, q_name="ASIDE", where=hour_ago)) == bool(token)
    assert count(world, RetryDeadLetters, q_name="ASIDE") == 1
    assert [message.descriptor.accounting_token for message in got(world, "P")] == [token]


def test_what_has_no_one_way_back_stays_until_a_queue_is_named(world, dlq):
    world.define("ASIDE")
    for name in ("P", "R"):
        world.define(name, backout_threshold=1, backout_requeue="qmgr", backout_requeue_q_name="ASIDE")
    poison(world, "P")
    assert refused(world, q_name="ASIDE") == [("OBJECT_NOT_UNIQUE", "P and R have BOQNAME(ASIDE)", 1)]
    world.put("DLQ", b"plain")
    dead(world, b"far", q_mgr="QM9")
    assert refused(world) == [
        ("DLH_ERROR", "it has no header, and no queue has BOQNAME(DLQ)", 1),
        ("UNKNOWN_REMOTE_Q_MGR", "it was meant for Q of queue manager QM9", 1),
    ]
    assert (world.queue_depth("DLQ"), world.queue_depth("ASIDE")) == (2, 1)
    assert count(world, RetryDeadLetters, to_q_name="Q") == 2
    assert count(world, RetryDeadLetters, q_name="ASIDE", to_q_name="Q") == 1
    assert [m.data for m in got(world, "Q")] == [b"plain", b"far", b"bad"]


def test_what_a_queue_refuses_stays_and_is_counted_with_the_reason(world, dlq):
    world.define("SMALL", max_q_depth=2)
    world.define("SHUT", inhibit_put="inhibited")
    for body in (b"1", b"2", b"3", b"4"):
        dead(world, body, to="SMALL")
    dead(world, b"5", to="SHUT")
    dead(world, b"6", to="GONE")
    dead(world, b"7", to="DLQ")
    dead(world, b"8")
    assert refused(world) == [
        ("Q_FULL", "SMALL: MAXDEPTH(2)", 2),
        ("PUT_INHIBITED", "SHUT", 1),
        ("UNKNOWN_OBJECT_NAME", "GONE", 1),
        ("OBJECT_NAME_ERROR", "DLQ is the queue that it lies on", 1),
    ]
    assert [m.data for m in got(world, "SMALL")] == [b"1", b"2"]
    assert [row["dest_q_name"] for row in rows(world)] == ["SMALL", "SMALL", "SHUT", "GONE", "DLQ"]


def test_a_trigger_message_goes_back_to_its_initiation_queue_and_to_the_monitor_that_waits_there(world, dlq):
    world.define("INITQ")
    tm = pack_tm(Tm(q_name="Q"))
    date, time = date_and_time(0)
    header = DeadLetterHeader(
        reason=FULL, dest_q_name="INITQ", dest_q_mgr_name="QM1", format="MQTRIG", put_date=date, put_time=time
    )
    world.put("DLQ", pack_dlh(header) + tm, format="MQDEAD")
    monitor = world.open("INITQ", IN, as_="monitor")
    waits = Get(handle=monitor, options=GetOption.WAIT.value, wait_interval_ms=-1)
    assert world.do(waits, "monitor") is None
    assert count(world, RetryDeadLetters) == 1
    (answer,) = world.ended_waits
    assert (answer.reply.descriptor.format, answer.reply.data) == ("MQTRIG", tm)


def test_what_goes_back_is_a_put_there_and_triggers(world, dlq):
    world.define("INITQ")
    world.define("PROC", "PROCESS", appl_id="/bin/true")
    world.define("T", trigger_control="on", initiation_q_name="INITQ", process_name="PROC")
    world.open("INITQ", IN, as_="monitor")
    dead(world, b"body", to="T")
    assert count(world, RetryDeadLetters) == 1
    assert world.fired() == ["T"]


def test_only_what_fits_is_discarded(world, dlq):
    dead(world, b"1")
    dead(world, b"2", reason=266)
    assert count(world, DiscardDeadLetters, where=Sieve(reason=266)) == 1
    assert [row["reason"] for row in rows(world)] == [FULL]
    assert count(world, DiscardDeadLetters) == 1
    assert world.queue_depth("DLQ") == 0


def test_what_somebody_has_in_a_unit_of_work_is_not_touched(world, dlq):
    dead(world, b"mine")
    dead(world, b"other")
    handle = world.open("DLQ", IN)
    world.did(Get(handle=handle, options=SYNC, unit=1))
    assert count(world, RetryDeadLetters) == 1
    assert count(world, DiscardDeadLetters) == 0
    world.did(Backout(unit=1))
    assert [row["data"] for row in rows(world, with_data=True)] == [b"mine"]


def test_expired_dead_letters_are_not_returned_but_discarded_on_the_way(world, dlq):
    for _ in range(300):
        dead(world, b"old", expiry=1)
    dead(world, b"new")
    world.clock.advance(1000)
    assert count(world, RetryDeadLetters) == 1
    assert (world.queue_depth("DLQ"), world.queue_depth("Q")) == (0, 1)


def test_a_queue_that_is_not_there_is_named(world):
    assert world.do(DeadLetters(), "operator").about == "DEADQ( ): the queue manager names no dead-letter queue"
    assert world.do(DeadLetters(q_name="NONE"), "operator").about == "QLOCAL(NONE)"
    world.did(Alter(object_type="QMGR", name="", attributes={"dead_letter_q_name": "MISSING"}))
    assert world.do(DiscardDeadLetters(), "operator").about == "QLOCAL(MISSING)"


@pytest.mark.parametrize("kind", ["QMODEL", "QREMOTE"])
def test_only_a_local_queue_is_looked_through(world, kind):
    world.define("OTHER", kind)
    for call in (DeadLetters, RetryDeadLetters, DiscardDeadLetters):
        reply = world.do(call(q_name="OTHER"), "operator")
        assert (reply.reason, reply.about) == (Reason.Q_WRONG_TYPE, "QLOCAL(OTHER)")


def test_what_went_back_is_on_one_queue_after_a_crash(world, dlq):
    dead(world, b"body")
    assert count(world, RetryDeadLetters) == 1
    world.crash()
    assert (world.queue_depth("DLQ"), [m.data for m in got(world, "Q")]) == (0, [b"body"])


@pytest.mark.parametrize("kind", [DeadLetters, RetryDeadLetters, DiscardDeadLetters])
def test_the_sender_that_asked_gets_a_report_of_a_dead_letter_that_had_expired(world, dlq, kind):
    world.define("REPLIES")
    dead(world, b"late", expiry=10, report=int(ReportOption.EXPIRATION), reply_to_q="REPLIES")
    world.clock.advance(2000)
    (answer,) = [one for one in sift(world, kind) if not one.more]
    assert answer.count == world.queue_depth("DLQ") == 0
    assert world.queue_depth("REPLIES") == 1

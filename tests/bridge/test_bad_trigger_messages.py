"""Trigger messages from elsewhere that start nothing: each ends on the dead-letter queue there, with its reason."""

from __future__ import annotations

import os
import pwd

from tests.bridge.bench import DEADQ, INITQ, Bench
from tests.bridge.conftest import NEEDS_IBMMQ
from tests.daemons import Daemon, define
from tests.tls.authorities import Site
from tests.waiting import until
from trigmon.mq.calls import Alter
from trigmon.mq.descriptors import TriggerMessage, pack_tm, unpack_dlh
from trigmon.tls.accounts import Account

TM_ERROR, APPL_TYPE, CANNOT_START, NOT_AUTHORIZED = 266, 267, 265, 2035
BAD, GOOD = b"no trigger message", pack_tm(TriggerMessage(q_name="Q", process_name="P"))


def dead_letters(one):
    """Takes the dead letters there: the header of each, and the trigger message behind it."""
    with one.far.open(DEADQ, "input_shared") as queue:
        messages = list(queue.drain())
    assert {message.descriptor.format for message in messages} <= {"MQDEAD"}
    return [unpack_dlh(message.data) for message in messages]


def test_bad_trigger_messages_end_on_the_dead_letter_queue_there(bench):
    one = bench()
    one.process()
    one.process("MISSING", appl_id="/nowhere/program")
    one.process("DIRECTORY", appl_id=str(one.home))
    one.process("BLANK", appl_id=" ")
    one.process("CICS", appl_type="cics")
    one.process("AS.ANOTHER", run_as="nobody")
    good = TriggerMessage(q_name="Q", process_name="P")
    data = pack_tm(good)
    bad = [
        (data, "", TM_ERROR),
        (data, "MQSTR", TM_ERROR),
        (b"", "MQTRIG", TM_ERROR),
        (data[:-1], "MQTRIG", TM_ERROR),
        (data + b"x", "MQTRIG", TM_ERROR),
        (b"TMC " + data[4:], "MQTRIG", TM_ERROR),
        (data[:4] + b"\2\0\0\0" + data[8:], "MQTRIG", TM_ERROR),
        (b"x" * 300_000, "MQTRIG", TM_ERROR),
        (data.replace(b"Q ", b"Q\n", 1), "MQTRIG", TM_ERROR),
        (pack_tm(TriggerMessage(q_name="", process_name="P")), "MQTRIG", TM_ERROR),
        (pack_tm(TriggerMessage(q_name="Q@X", process_name="P")), "MQTRIG", TM_ERROR),
        (pack_tm(TriggerMessage(q_name="Q", process_name="UNKNOWN")), "MQTRIG", TM_ERROR),
        (pack_tm(TriggerMessage(q_name="Q", appl_id="/bin/true", appl_type=6)), "MQTRIG", TM_ERROR),
        (pack_tm(TriggerMessage(q_name="Q", process_name="CICS")), "MQTRIG", APPL_TYPE),
        (pack_tm(TriggerMessage(q_name="Q", process_name="MISSING")), "MQTRIG", CANNOT_START),
        (pack_tm(TriggerMessage(q_name="Q", process_name="DIRECTORY")), "MQTRIG", CANNOT_START),
        (pack_tm(TriggerMessage(q_name="Q", process_name="BLANK")), "MQTRIG", CANNOT_START),
        (pack_tm(TriggerMessage(q_name="Q", process_name="AS.ANOTHER")), "MQTRIG", CANNOT_START),
    ]
    define(one.far, "Q")
    one.far.call(Alter(object_type="QLOCAL", name=INITQ, attributes={"max_msg_length": 1_000_000}))
    for message, form, _ in bad:
        one.far.put(INITQ, message, format=form)
    one.far.put(INITQ, data, format="MQTRIG")
    one.monitored()
    runs = one.ended(len(bad) + 1)
    assert [run["state"] for run in runs] == ["failed"] * len(bad) + ["exited"]
    dead = dead_letters(one)
    assert [(header.reason, left, header.format) for header, left in dead] == [
        (reason, message, form) for message, form, reason in bad
    ]
    assert {(header.dest_q_name, header.dest_q_mgr_name) for header, _ in dead} == {(INITQ, "PROD")}
    assert one.depth(DEADQ, one.qm) == 0
    assert one.depth(INITQ) == 0


def alter(one, name, object_type="QLOCAL", **attributes):
    one.far.call(Alter(object_type=object_type, name=name, attributes=attributes))


def put(one, data):
    one.far.put(INITQ, data, format="MQTRIG")


def test_while_the_dead_letter_queue_takes_nothing_a_bad_message_waits_and_those_behind_it_alone(bench):
    one = bench()
    one.process()
    define(one.far, "Q")
    one.monitored()
    for number, (name, object_type, hinders, mended, reason) in enumerate(
        [
            (DEADQ, "QLOCAL", {"max_q_depth": 0}, {"max_q_depth": 10}, 2053),
            (DEADQ, "QLOCAL", {"inhibit_put": "inhibited"}, {"inhibit_put": "allowed"}, 2051),
            ("PROD", "QMGR", {"dead_letter_q_name": "NOWHERE"}, {"dead_letter_q_name": DEADQ}, 2085),
        ]
    ):
        alter(one, name, object_type, **hinders)
        one.far.put_many(INITQ, [GOOD, BAD, GOOD], format="MQTRIG")
        until(lambda text=f": {reason} ": text in one.problem(), 60)
        until(lambda: one.depth(INITQ) == 2, 60)
        assert [run["state"] for run in one.ended(3 * number + 1)[3 * number :]] == ["exited"]
        alter(one, name, object_type, **mended)
        assert [run["state"] for run in one.ended(3 * number + 3)[-2:]] == ["failed", "exited"]
        assert [(header.reason, left) for header, left in dead_letters(one)] == [(TM_ERROR, BAD)]
        until(lambda: one.depth(INITQ) == 0, 60)
    alter(one, "PROD", "QMGR", dead_letter_q_name="")
    put(one, BAD)
    run = one.ended(10)[-1]
    assert run["state"] == "failed"
    assert run["why"].endswith("the trigger message was dropped: PROD names no dead-letter queue (DEADQ)")
    until(lambda: one.depth(INITQ) == 0, 60)


@NEEDS_IBMMQ
def test_what_only_a_monitor_of_an_administrator_may_start_is_2035_there(tmp_path_factory, library_directory):
    """The monitor comes by TLS as an account that may keep the ledger, and is no administrator."""
    home = tmp_path_factory.mktemp("qm")
    site = Site(home / "tls")
    site.let_in(Account("keeper", site.password("a password of tests")))
    here = Daemon(home, "QM1", settings=site.settings | {"server.monitors": "keeper"})
    one = Bench(home, library_directory, here=here, applicid_of_message="true")
    try:
        other = "nobody" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
        users = home / "users"
        users.write_text(f"{other}\n")
        one.variables["TRIGMON_MONITOR_RUN_AS_FILE"] = str(users)
        one.process()
        one.process("AS.ANOTHER", run_as=other)
        define(one.far, "Q")
        refused = [
            pack_tm(TriggerMessage(q_name="Q", process_name="AS.ANOTHER")),
            pack_tm(TriggerMessage(q_name="Q", process_name="THEIRS", appl_type=6, appl_id="/bin/true")),
        ]
        alter(one, DEADQ, max_q_depth=0)
        one.far.put_many(INITQ, [GOOD, *refused], format="MQTRIG")
        one.monitored(address=site.address(user="keeper"))
        assert [run["state"] for run in one.ended(1)] == ["exited"], "what the ledger refuses holds up none before it"
        until(lambda: ": 2053 " in one.problem(), 60)
        alter(one, DEADQ, max_q_depth=10)
        runs = one.ended(3)
        assert sorted(run["state"] for run in runs) == ["exited", "failed", "failed"]
        assert all("a monitor of an administrator" in run["why"] for run in runs if run["state"] == "failed")
        assert [(header.reason, left) for header, left in dead_letters(one)] == [
            (NOT_AUTHORIZED, data) for data in refused
        ]
        until(lambda: one.depth(INITQ) == 0, 60)
    finally:
        one.end()

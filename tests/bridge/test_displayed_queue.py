"""Queues from the output of DISPLAY: of another product's layout, and of trigmon's own."""

from __future__ import annotations

import pytest

from trigmon.bridge.displayed_queue import displayed_queues, read_displayed
from trigmon.bridge.remote_verdict import explain_seen
from trigmon.bridge.seen_queue import ZOS, Fact, NotSeen
from trigmon.mq.enums import TriggerControl, TriggerType
from trigmon.mq.errors import UnknownObjectName

TEXT = """\
     1 : DISPLAY QLOCAL(PAY) ALL
AMQ8409I: Display Queue details.
   QUEUE(PAY)                              TYPE(QLOCAL)
   ACCTQ(QMGR)                             CRDATE(2026-01-02)
   CURDEPTH(12)                            DEFPRTY(0)
   GET(ENABLED)                            PUT(ENABLED)
   INITQ(PAY.INIT)                         IPPROCS(1)
   MSGDLVSQ(PRIORITY)                      OPPROCS(2)
   PROCESS(PAY.LOAD)                       TRIGGER
   TRIGDPTH(1)                             TRIGMPRI(0)
   TRIGTYPE(FIRST)                         USAGE(NORMAL)
     2 : DISPLAY QLOCAL(PAY.INIT) ALL
AMQ8409I: Display Queue details.
   QUEUE(PAY.INIT)                         TYPE(QLOCAL)
   GET(ENABLED)                            PUT(ENABLED)
   IPPROCS(1)                              USAGE(NORMAL)
     3 : DISPLAY QSTATUS(PAY) ALL
AMQ8450I: Display queue status details.
   QUEUE(PAY)                              TYPE(QUEUE)
   CURDEPTH(12)                            IPPROCS(1)
   OPPROCS(2)                              UNCOM(3)
     4 : DISPLAY QSTATUS(PAY) TYPE(HANDLE) ALL
AMQ8450I: Display queue status details.
   QUEUE(PAY)                              TYPE(HANDLE)
   APPLTAG(/opt/app/bin/load)              INPUT(SHARED)
   OUTPUT(NO)                              PID(4711)
   USERID(app)                             BROWSE(NO)
     5 : DISPLAY PROCESS(PAY.LOAD) ALL
AMQ8147E: IBM MQ object PAY.LOAD not found.
     6 : DISPLAY QMGR TRIGINT
AMQ8408I: Display Queue Manager details.
   QMNAME(QM2)                             TRIGINT(999999999)
"""


def test_what_the_text_shows_is_judged():
    pay = next(seen for seen in displayed_queues(TEXT) if seen.asked == "PAY")
    assert (pay.q_mgr_name, pay.queue.depth, pay.queue.open_input_count, pay.uncommitted) == ("QM2", 12, 1, 3)
    assert pay.queue.definition.trigger_control is TriggerControl.ON
    assert pay.queue.definition.trigger_type is TriggerType.FIRST
    assert str(pay.handles[0]) == "/opt/app/bin/load, pid 4711, user app, for input"
    assert pay.process("PAY.LOAD") is None
    explained = explain_seen(pay, -1, 1)
    assert explained.fails == ["4", "6"]
    assert explained.q_name == "PAY@QM2"


def test_what_the_text_lacks_is_not_seen():
    only = TEXT.split("     2 :")[0]
    pay = displayed_queues(only)[0]
    assert {Fact.INTERVAL, Fact.UNCOMMITTED, Fact.HANDLES} <= set(pay.unseen)
    assert isinstance(pay.process("PAY.LOAD"), NotSeen)
    explained = explain_seen(pay, -1, 1)
    by_number = {each.number: each for each in explained.conditions}
    assert [number for number in ("6", "7", "8") if by_number[number].holds == "not seen"] == ["6", "7", "8"]
    assert "DISPLAY PROCESS(PAY.LOAD) ALL" in by_number["6"].seen


def test_the_platform_is_known_by_the_numbers_of_its_messages():
    text = TEXT.replace("AMQ8409I:", "CSQM401I QM2").replace("   GET(ENABLED) ", "   GET(DISABLED)")
    pay = next(seen for seen in displayed_queues(text) if seen.asked == "PAY")
    assert pay.platform == ZOS
    assert "5" in explain_seen(pay, -1, 1).fails


def test_a_queue_that_the_text_does_not_show_is_named(tmp_path):
    file = tmp_path / "display.txt"
    file.write_text(TEXT)
    assert read_displayed(file, "PAY").asked == "PAY"
    with pytest.raises(UnknownObjectName, match=r"DISPLAY QLOCAL\(OTHER\) ALL"):
        read_displayed(file, "OTHER")

from __future__ import annotations

import re
import threading
from importlib import import_module

import pytest

from tests.mqi.mqi_program import (
    ACCEPT,
    ASYNC,
    BROWSE,
    BROWSE_FIRST,
    BROWSE_NEXT,
    INPUT,
    INQUIRE,
    LOCK,
    NAMELIST,
    OUTPUT,
    PROCESS,
    Q_MGR,
    SET,
    SHARE_NO_BLOCK,
    SHARE_NONE,
    SYNCPOINT,
    TOPIC,
    UNDER_CURSOR,
    WAIT,
    Failed,
    Program,
    cno,
    done,
    md_with,
    od,
    pmo_with,
)
from trigmon.mq.calls import Define
from trigmon.mq.descriptors import NO_ID
from trigmon.mqi import ibmmqc
from trigmon.mqi.structures import MQMD, MQOD, MQPMO, MQSD, MQSRO, MQSTS


def reason_of(call, *arguments, **words):
    with pytest.raises(Failed) as failed:
        call(*arguments, **words)
    return failed.value.reason


# -- objects ------------------------------------------------------------------------------------------------


def test_a_message_is_put_and_got(program, queue):
    hobj = program.open(queue(), INPUT | OUTPUT)
    put = program.put(hobj, b"one", Priority=3, Format=b"MQSTR", CorrelId=b"c", ReplyToQ=b"REPLY", MsgType=1)
    data, md, gmo = program.get(hobj)
    assert data == b"one"
    assert put["MsgId"] == md["MsgId"] != NO_ID
    assert {name: md[name] for name in ("Priority", "Persistence", "MsgType", "CodedCharSetId", "Encoding")} == {
        "Priority": 3,
        "Persistence": 0,
        "MsgType": 1,
        "CodedCharSetId": 1208,
        "Encoding": 546,
    }
    assert (md["Format"], md["CorrelId"].rstrip(b"\0"), md["ReplyToQ"].rstrip()) == (b"MQSTR   ", b"c", b"REPLY")
    assert md["PutDate"] == put["PutDate"]
    assert re.fullmatch(rb"\d{8}", md["PutDate"])
    assert gmo["ReturnedLength"] == 3


def test_a_put_to_a_queue_that_is_not_open(program, queue):
    name = queue()
    md, pmo, comp_code, _ = ibmmqc.MQPUT1(program.hconn, od(name), md_with({}), pmo_with(0), b"one")
    assert comp_code == 0
    assert MQPMO.unpack(pmo)["ResolvedQName"].rstrip() == name.encode()
    assert MQMD.unpack(md)["MsgId"] != NO_ID
    assert program.data(program.open(name, INPUT)) == b"one"


def test_what_is_not_there_is_2085(program):
    assert reason_of(program.open, "NOBODY", OUTPUT) == 2085
    assert reason_of(program.open, "NOBODY", INQUIRE, ObjectType=PROCESS) == 2085
    assert reason_of(program.open, "NOBODY", INQUIRE, ObjectType=NAMELIST) == 2085


def test_another_queue_manager_is_2087_and_a_topic_is_2043(program):
    assert reason_of(program.open, "Q", OUTPUT, ObjectQMgrName=b"OTHER") == 2087
    assert reason_of(program.open, "T", OUTPUT, ObjectType=TOPIC) == 2043


@pytest.mark.parametrize("ignored", [0x1000, 0x4000, 0x8000, 0x10000, 0x20000, 0x40000, 0x80000, 0x100000, 0x400000])
def test_options_about_clusters_and_other_users_are_passed_over(program, queue, ignored):
    program.close(program.open(queue(), OUTPUT | INPUT | ignored))


def test_a_model_queue_makes_a_dynamic_one(program):
    given = od("SYSTEM.DEFAULT.MODEL.QUEUE", DynamicQName=b"REPLY.*")
    hobj, found = done(ibmmqc.MQOPEN(program.hconn, given, INPUT | OUTPUT))
    name = MQOD.unpack(found)["ObjectName"].rstrip()
    assert re.fullmatch(rb"REPLY\.[0-9A-F]{16}", name)
    program.put(hobj, b"reply")
    assert program.data(hobj) == b"reply"


def test_an_alias_keeps_its_name_and_tells_its_queue(program, qm, queue):
    base = queue()
    qm.call(Define(object_type="QALIAS", name=f"A.{base}", attributes={"base_q_name": base}))
    _, found = done(ibmmqc.MQOPEN(program.hconn, od(f"A.{base}"), OUTPUT))
    fields = MQOD.unpack(found)
    assert (fields["ObjectName"].rstrip(), fields["ResolvedQName"].rstrip()) == (f"A.{base}".encode(), base.encode())


def test_attributes_are_inquired_in_the_order_of_their_selectors(program, queue, qm):
    name = queue(max_q_depth=7, description="for letters", process_name="P", trigger_data="T")
    hobj = program.open(name, INQUIRE | OUTPUT)
    program.put(hobj)
    integers, characters = program.inquire(hobj, 2016, 15, 2013, 3, 20, 2023, 9)
    assert integers == [7, 1, 1, 0]
    assert characters.rstrip() == name.encode().ljust(48) + b"for letters".ljust(64) + b"T"


def test_times_have_mqs_forms(program, queue):
    _, characters = program.inquire(program.open(queue(), INQUIRE), 2004, 2005)
    assert re.fullmatch(rb"\d{4}-\d\d-\d\d  \d\d\.\d\d\.\d\d *", characters)


def test_the_queue_manager_is_inquired(program):
    hobj = program.open("", INQUIRE, ObjectType=Q_MGR)
    integers, characters = program.inquire(hobj, 31, 2, 2015)
    assert integers[0] >= 900
    assert integers[1] == 1208
    assert characters.rstrip() == b"QM1"


def test_a_process_is_inquired(program, qm):
    qm.call(Define(object_type="PROCESS", name="P.MQI", attributes={"appl_id": "echo", "description": "says"}))
    _, characters = program.inquire(program.open("P.MQI", INQUIRE, ObjectType=PROCESS), 2012, 2001, 2011)
    assert characters.rstrip() == b"P.MQI".ljust(48) + b"echo".ljust(256) + b"says"


def test_a_selector_that_is_none_is_2067_and_one_of_another_type_2068(program, queue):
    hobj = program.open(queue(), INQUIRE)
    assert reason_of(program.inquire, hobj, 1999) == 2067
    with pytest.raises(Failed) as failed:
        program.inquire(hobj, 2002)
    assert (failed.value.comp_code, failed.value.reason) == (1, 2068)


def test_attributes_are_set(program, queue):
    hobj = program.open(queue(), INQUIRE | SET)
    done(ibmmqc.MQSET(program.hconn, hobj, [24, 10, 2023], [1, 1], b"NEW".ljust(64)))
    integers, characters = program.inquire(hobj, 24, 10, 2023)
    assert (integers, characters.rstrip()) == ([1, 1], b"NEW")
    assert ibmmqc.MQSET(program.hconn, hobj, [24], [], b"") == (2, 2022)
    assert ibmmqc.MQSET(program.hconn, hobj, [2023], [], b"short") == (2, 2008)
    assert ibmmqc.MQSET(program.hconn, hobj, [24], [5], b"") == (2, 2075)


def test_a_closed_handle_is_none(program, queue):
    hobj = program.open(queue(), OUTPUT)
    program.close(hobj)
    assert reason_of(program.put, hobj) == 2019
    assert reason_of(program.close, hobj) == 2019


# -- gets ---------------------------------------------------------------------------------------------------


def test_a_get_finds_by_message_and_correlation_id(program, queue):
    hobj = program.open(queue(), INPUT | OUTPUT)
    first = program.put(hobj, b"one", CorrelId=b"a")
    program.put(hobj, b"two", CorrelId=b"b")
    assert program.data(hobj, CorrelId=b"b") == b"two"
    assert reason_of(program.get, hobj, CorrelId=b"b") == 2033
    assert program.data(hobj, MsgId=first["MsgId"]) == b"one"


def test_a_get_waits_for_a_message(program, here, queue):
    name = queue()
    hobj = program.open(name, INPUT)
    assert reason_of(program.get, hobj, WAIT, wait_ms=10) == 2033

    def put():
        with here.connect() as other:
            other.put(name, b"late")

    thread = threading.Timer(0.05, put)
    thread.start()
    assert program.data(hobj, WAIT, wait_ms=30_000) == b"late"
    thread.join()


def test_a_browse_leaves_messages_where_they_are_and_locks_one(program, queue):
    name = queue()
    hobj = program.open(name, INPUT | OUTPUT | BROWSE)
    for data in (b"one", b"two"):
        program.put(hobj, data)
    assert program.data(hobj, BROWSE_FIRST) == b"one"
    assert program.data(hobj, BROWSE_NEXT | LOCK) == b"two"
    other = Program()
    try:
        assert other.data(other.open(name, INPUT)) == b"one"
    finally:
        other.disconnect()
    assert program.data(hobj, UNDER_CURSOR) == b"two"


def test_a_message_that_was_browsed_is_found_by_its_token(program, queue):
    hobj = program.open(queue(), INPUT | OUTPUT | BROWSE)
    for data in (b"one", b"two", b"three"):
        program.put(hobj, data)
    program.get(hobj, BROWSE_FIRST)
    token = program.get(hobj, BROWSE_NEXT)[2]["MsgToken"]
    by_token = {"MatchOptions": 0x20, "MsgToken": token}
    assert program.data(hobj, gmo=by_token) == b"two"
    assert reason_of(program.get, hobj, gmo=by_token) == 2033
    assert reason_of(program.get, hobj, gmo={"MatchOptions": 0x20, "MsgToken": b"unknown".ljust(16)}) == 2033
    assert program.data(hobj, gmo={"MatchOptions": 0x20}) == b"one"


def test_a_message_that_is_too_long_stays_unless_it_may_be_cut(program, queue):
    hobj = program.open(queue(), INPUT | OUTPUT)
    program.put(hobj, b"0123456789")
    for options, reason in ((0, 2080), (ACCEPT, 2079)):
        with pytest.raises(Failed) as failed:
            program.get(hobj, options, length=4)
        assert (failed.value.comp_code, failed.value.reason) == (1, reason)
        assert (failed.value.results[0], failed.value.results[3]) == (b"0123", 10)
    assert reason_of(program.get, hobj) == 2033
    assert reason_of(program.get, hobj, length=-1) == 2005


def test_structures_of_older_versions_are_taken(program, queue):
    hobj = program.open(queue(), INPUT | OUTPUT, Version=1)
    program.put(hobj, b"one", Version=1, pmo={"Version": 1})
    assert program.data(hobj, Version=1, gmo={"Version": 1}) == b"one"
    assert reason_of(program.put, hobj, Version=3) == 2257
    assert reason_of(program.get, hobj, gmo={"Version": 5}) == 2256


# -- units of work, asynchronous puts -----------------------------------------------------------------------


def test_a_unit_of_work_is_backed_out_and_committed(program, queue):
    hobj = program.open(queue(), INPUT | OUTPUT)
    program.put(hobj, b"gone", SYNCPOINT)
    program.backout()
    program.put(hobj, b"here", SYNCPOINT)
    assert reason_of(program.get, hobj) == 2033
    program.commit()
    assert program.data(hobj, SYNCPOINT) == b"here"
    program.backout()
    assert program.get(hobj)[1]["BackoutCount"] == 1


def test_a_disconnect_commits(here, queue, qm):
    name = queue()
    program = Program()
    program.put(program.open(name, OUTPUT), b"one", SYNCPOINT)
    program.disconnect()
    assert qm.open(name, "input_shared").get().data == b"one"
    assert ibmmqc.MQDISC(program.hconn) == (2, 2018)


def test_no_other_resource_manager_takes_part(program):
    assert ibmmqc.MQBEGIN(program.hconn) == (1, 2121)


def stat(program, kind=0):
    return MQSTS.unpack(done(ibmmqc.MQSTAT(program.hconn, kind, MQSTS.pack({"Version": 2}))))


def test_asynchronous_puts_fail_later(program, queue):
    name = queue(max_q_depth=2)
    hobj = program.open(name, OUTPUT)
    for _ in range(5):
        program.put(hobj, options=ASYNC)
    told = stat(program)
    assert (told["PutSuccessCount"], told["PutFailureCount"], told["CompCode"], told["Reason"]) == (2, 3, 2, 2053)
    assert told["ResolvedObjectName"].rstrip() == name.encode()
    assert (stat(program)["PutFailureCount"], stat(program, 1)["CompCode"]) == (0, 0)
    assert ibmmqc.MQSTAT(program.hconn, 9, MQSTS.pack())[1:] == (2, 2430)


def test_a_unit_with_an_asynchronous_put_that_failed_is_not_committed(program, queue):
    name = queue(max_q_depth=1)
    hobj = program.open(name, INPUT | OUTPUT)
    for _ in range(2):
        program.put(hobj, options=ASYNC | SYNCPOINT)
    assert reason_of(program.commit) == 2003
    assert reason_of(program.get, hobj) == 2033
    program.put(hobj, options=ASYNC | SYNCPOINT)
    program.commit()
    assert program.data(hobj) == b"one"


# -- handles and threads ------------------------------------------------------------------------------------


def in_a_thread(work):
    found = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join()
    return found[0]


def test_a_handle_that_is_not_shared_is_of_one_thread(here, queue):
    alone = Program(options=SHARE_NONE)
    assert in_a_thread(lambda: ibmmqc.MQCMIT(alone.hconn)) == (2, 2018)
    alone.disconnect()
    shared = Program()
    assert in_a_thread(lambda: ibmmqc.MQCMIT(shared.hconn)) == (0, 0)
    assert ibmmqc.MQCMIT(shared.hconn) == (0, 0)
    shared.disconnect()


def test_a_call_waits_for_another_threads_get_or_is_refused(here, queue, qm):
    name = queue()
    for options, expected in ((SHARE_NO_BLOCK, (2, 2219)), (0x40, (0, 0))):
        shared = Program(options=options)
        hobj = shared.open(name, INPUT)
        thread = threading.Thread(target=lambda s=shared, h=hobj: s.get(h, WAIT, wait_ms=-1))
        thread.start()
        while not qm.open(name, "inquire").inquire("open_input_count"):
            pass
        answers = []
        other = threading.Thread(target=lambda s=shared, a=answers: a.append(ibmmqc.MQCMIT(s.hconn)))
        while options == SHARE_NO_BLOCK and (2, 2219) not in answers:
            answers.append(ibmmqc.MQCMIT(shared.hconn))
        other.start()
        qm.put(name, b"ends the wait")
        thread.join()
        other.join()
        assert expected in answers
        shared.disconnect()


def test_handles_that_are_none_are_2018(program):
    for function, arguments in (
        ("MQCMIT", ()),
        ("MQOPEN", (od("Q"), OUTPUT)),
        ("MQPUT1", (od("Q"), md_with({}), pmo_with(0), b"")),
        ("MQSTAT", (0, MQSTS.pack())),
    ):
        assert getattr(ibmmqc, function)(99_999, *arguments)[-2:] == (2, 2018)


def test_publish_subscribe_is_not_here(program):
    assert ibmmqc.MQSUB(program.hconn, MQSD.pack(), -1)[-2:] == (2, 2298)
    assert ibmmqc.MQSUBRQ(program.hconn, 1, 1, MQSRO.pack())[-2:] == (2, 2298)


def test_a_structure_of_another_length_is_refused_as_the_c_module_does(program):
    with pytest.raises(ibmmqc.error, match="MQOD wrong size"):
        ibmmqc.MQOPEN(program.hconn, b"OD  ", OUTPUT)


def test_why_a_call_failed_is_logged_where_it_is_asked_for(program, tmp_path):
    file = tmp_path / "mqi.log"
    ibmmqc.MQLOGCF(1, str(file))
    assert reason_of(program.open, "NOBODY", OUTPUT) == 2085
    ibmmqc.MQLOGCF(0)
    assert reason_of(program.open, "ELSE", OUTPUT) == 2085
    assert "MQOPEN" in file.read_text()
    assert "NOBODY" in file.read_text()
    assert "ELSE" not in file.read_text()


def test_every_function_of_the_c_module_is_there():
    names = [name for name in ibmmqc.__all__ if name.startswith("MQ")]
    assert len(names) == 25
    assert all(callable(getattr(ibmmqc, name)) for name in names)
    assert ibmmqc.__strucversions__["od"] == 4
    assert ibmmqc.__strucversions__["gmo"] == 4


def test_the_c_module_is_replaced_by_one_line(monkeypatch):
    import sys

    monkeypatch.delitem(sys.modules, "trigmon.mqi.replace_ibmmqc", raising=False)
    import_module("trigmon.mqi.replace_ibmmqc")
    assert sys.modules.pop("ibmmq.ibmmqc") is ibmmqc


def test_an_application_has_the_name_that_it_gives(here, qm, queue):
    named = done(ibmmqc.MQCONNX(b"QM1", cno(ApplName=b"billing"), None, None, None, None))
    hobj = done(ibmmqc.MQOPEN(named, od(name := queue()), OUTPUT))[0]
    ibmmqc.MQPUT(named, hobj, md_with({}), pmo_with(0), b"one")
    assert qm.open(name, "input_shared").get().put_appl_name == "billing"
    ibmmqc.MQDISC(named)


def test_a_namelist_is_inquired(program, qm):
    qm.call(Define(object_type="NAMELIST", name="NL.MQI", attributes={"names": ["ONE", "TWO"]}))
    hobj = program.open("NL.MQI", INQUIRE, ObjectType=NAMELIST)
    integers, characters = program.inquire(hobj, 19, 2010, 2020)
    assert integers == [2]
    assert characters.rstrip() == b"NL.MQI".ljust(48) + b"ONE".ljust(48) + b"TWO"

from __future__ import annotations

import ctypes
import json

import pytest

from tests.mqi.mqi_program import Program, cno, done
from trigmon.mqi import ibmmqc
from trigmon.mqi.memory import read_text
from trigmon.mqi.mqi_numbers import MqiError
from trigmon.mqi.queue_manager_address import place_of
from trigmon.mqi.structures import MQCD


def answers(program):
    """Returns the queue manager that a program is connected to."""
    hobj = program.open("", 0x20, ObjectType=5)
    _, name = program.inquire(hobj, 2015)
    program.disconnect()
    return name.rstrip().decode()


def cd(connection_name):
    return MQCD.pack({"Version": 11, "ChannelName": b"APP", "ConnectionName": connection_name.encode()})


@pytest.fixture
def table(tmp_path):
    """Makes a client channel definition table: ``table(QM1=["host(1414)"])``."""

    def make(**q_mgrs):
        def connection(text):
            host, _, port = text.removesuffix(")").partition("(")
            return {"host": host, "port": int(port)}

        channels = [
            {
                "name": f"TO.{name}",
                "type": "clientConnection",
                "clientConnection": {"queueManager": name, "connection": [connection(one) for one in hosts]},
            }
            for name, hosts in q_mgrs.items()
        ]
        file = tmp_path / "ccdt.json"
        file.write_text(json.dumps({"channel": channels}))
        return file

    return make


def test_a_name_means_the_queue_manager_of_this_machine(here):
    assert answers(Program(b"QM1")) == "QM1"
    hconn, comp_code, _ = ibmmqc.MQCONN("QM1")
    assert comp_code == 0
    assert ibmmqc.MQDISC(hconn) == (0, 0)


def test_no_name_and_any_name_mean_the_one_that_runs(here):
    assert answers(Program(b"")) == "QM1"
    assert answers(Program(b"*")) == "QM1"


def test_a_queue_manager_that_does_not_run_is_2059(here):
    assert ibmmqc.MQCONN("NOBODY")[1:] == (2, 2059)
    assert ibmmqc.MQCONN("no name!")[1:] == (2, 2058)
    assert ibmmqc.MQCONNX(b"NOBODY", cno(), cd("localhost(1414)"), None, None, None)[1:] == (2, 2538)


def test_a_connection_name_of_this_machine_means_that_too(here):
    for where in ("localhost(1414)", "127.0.0.1(22),localhost(1414)", "127.0.0.1"):
        assert answers(Program(b"QM1", cd=cd(where))) == "QM1"


def test_an_address_of_trigmon_is_taken_as_it_is(here):
    assert answers(Program(b"QM1", cd=cd(here.address))) == "QM1"
    assert answers(Program(b"", cd=cd(here.address))) == "QM1"
    assert answers(Program(here.address.encode())) == "QM1"


def test_another_one_that_answers_is_2058(here):
    assert ibmmqc.MQCONNX(b"QM9", cno(), cd(here.address), None, None, None)[1:] == (2, 2058)
    assert answers(Program(b"*QM9", cd=cd(here.address))) == "QM1"


def test_mqserver_and_a_table_name_it(here, monkeypatch, table):
    monkeypatch.setenv("MQSERVER", "APP/TCP/localhost(1414)")
    assert answers(Program(b"QM1")) == "QM1"
    monkeypatch.delenv("MQSERVER")
    monkeypatch.setenv("MQCCDTURL", table(QM1=["localhost(1414)"]).as_uri())
    assert answers(Program(b"QM1")) == "QM1"
    assert ibmmqc.MQCONN("QM2")[1:] == (2, 2058)


def test_a_table_is_named_by_the_options(here, table):
    url = ctypes.create_string_buffer(str(table(QM1=["localhost(1414)"])).encode())
    options = cno(CCDTUrlPtr=ctypes.addressof(url), CCDTUrlLength=len(url.value))
    hconn = done(ibmmqc.MQCONNX(b"QM1", options, None, None, None, None))
    assert ibmmqc.MQDISC(hconn) == (0, 0)


def test_a_table_that_cannot_be_read_is_2537(here, tmp_path):
    for url in (str(tmp_path / "nowhere.json"), "http://example.com/ccdt.json", str(tmp_path)):
        with pytest.raises(MqiError) as failed:
            place_of("QM1", ccdt_url=url)
        assert failed.value.reason == 2537


def test_another_host_is_an_address_of_tls(here, table):
    assert place_of("QM7", "mq.example.com(1415)", environ={}).addresses == ["tls://mq.example.com:1415/QM7"]
    assert place_of("*", "a.example(1),b.example", environ={}).addresses == [
        "tls://a.example:1",
        "tls://b.example:1414",
    ]
    url = str(table(QM7=["a.example(1)"], QM8=["b.example(2)"]))
    assert place_of("QM8", environ={"MQCCDTURL": url}).addresses == ["tls://b.example:2/QM8"]
    with pytest.raises(MqiError):
        place_of("QM7", "mq.example.com(port)", environ={})


def test_the_users_file_names_it(monkeypatch, tmp_path):
    file = tmp_path / "client.ini"
    file.write_text("[QM7]\naddress = tls://mq.example.com:1415\n")
    monkeypatch.setenv("TRIGMON_CLIENT_FILE", str(file))
    assert place_of("QM7", "ignored.example(1)", environ={}).addresses == ["QM7"]


def test_a_pointer_to_nothing_is_no_text():
    text = ctypes.create_string_buffer(b"here")
    assert read_text(ctypes.addressof(text), 4) == "here"
    assert [read_text(address, 4) for address in (0, 1, 2**48, 2**64 - 1)] == [""] * 4
    assert read_text(ctypes.addressof(text), -1) == ""

"""MQ's sample programs by their names: what they print, line by line, and how they end."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.cli.mq_programs import MqPrograms


@pytest.fixture(scope="module")
def mq(shared_daemon, tmp_path_factory) -> MqPrograms:
    made = MqPrograms(shared_daemon, tmp_path_factory.mktemp("links"))
    script = "".join(f"DEF QL(S.{name}) REPLACE\n" for name in ("ONE", "TWO", "GET", "EMPTY"))
    assert made("runmqsc", "QM1", stdin=script + "DEF QL(S.FULL) MAXDEPTH(1)\n").returncode == 0
    return made


def test_amqsput_puts_lines_up_to_an_empty_one_and_amqsgbr_shows_them(mq: MqPrograms):
    assert mq.lines("amqsput", "S.ONE", "QM1", stdin="hello\nworld \r\n\nnot this\n") == [
        "Sample AMQSPUT0 start",
        "target queue is S.ONE",
        "Sample AMQSPUT0 end",
    ]
    for _ in range(2):
        assert mq.lines("amqsgbr", "S.ONE", "QM1") == [
            "Sample AMQSGBR0 (browse) start",
            "QM1",
            "Messages for S.ONE",
            "1 <hello>",
            "2 <world >",
            "no more messages",
            "Sample AMQSGBR0 (browse) end",
        ]
    assert mq.lines("amqsgbr", "S.EMPTY")[1:] == ["", "no more messages", "Sample AMQSGBR0 (browse) end"]


@pytest.mark.slow
def test_amqsget_takes_messages_until_none_came_for_15_seconds(mq: MqPrograms):
    mq("amqsput", "S.GET", "QM1", stdin="one\ntwo\n")
    assert mq.lines("amqsget", "S.GET", "QM1") == [
        "Sample AMQSGET0 start",
        "message <one>",
        "message <two>",
        "no more messages",
        "Sample AMQSGET0 end",
    ]
    assert "CURDEPTH(0)" in mq("runmqsc", "QM1", stdin="DIS QL(S.GET) CURDEPTH\n").stdout


def test_a_message_that_amqsget_could_not_print_is_back(mq: MqPrograms):
    mq("amqsput", "S.GET", "QM1", stdin="one\n")
    with Path("/dev/full").open("w") as full:
        argv = [str(mq.directory / "amqsget"), "S.GET", "QM1"]
        done = subprocess.run(argv, env=mq.daemon.env, stdout=full, stderr=subprocess.PIPE, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (1, b"amqsget: output: No space left on device\n")
    assert "1 <one>" in mq.lines("amqsgbr", "S.GET", "QM1")


def test_amqsbcg_prints_each_field_and_the_data_in_hexadecimal(mq: MqPrograms):
    mq("amqsput", "S.TWO", "QM1", stdin="0123456789abcdef\u00e9\n")
    told = [line.rstrip() for line in mq.lines("amqsbcg", "S.TWO", "QM1")]
    with mq.daemon.connect() as qm, qm.open("S.TWO", "browse") as queue:
        (message,) = queue.browse()
    expected = f"""
AMQSBCG0 - starts here
**********************

 MQOPEN - 'S.TWO'


 MQGET of message number 1, CompCode:0 Reason:0
****Message descriptor****

  StrucId  : 'MD  '  Version : 2
  Report   : 0  MsgType : 8
  Expiry   : -1  Feedback : 0
  Encoding : 546  CodedCharSetId : 1208
  Format : 'MQSTR   '
  Priority : 0  Persistence : 0
  MsgId : X'{message.msg_id.hex().upper()}'
  CorrelId : X'{"0" * 48}'
  BackoutCount : 0
  ReplyToQ       : '{"":48}'
  ReplyToQMgr    : '{message.reply_to_q_mgr:48}'
  ** Identity Context
  UserIdentifier : '{message.user_identifier:12}'
  AccountingToken :
   X'{message.accounting_token.ljust(32, bytes(1)).hex().upper()}'
  ApplIdentityData : '{"":32}'
  ** Origin Context
  PutApplType    : '6'
  PutApplName    : 'amqsput                     '
  PutDate  : '{message.put_time:%Y%m%d}'    PutTime  : '{message.put_time:%H%M%S}..'
  ApplOriginData : '    '

  GroupId : X'{"0" * 48}'
  MsgSeqNumber   : '1'
  Offset         : '0'
  MsgFlags       : '0'
  OriginalLength : '-1'

****   Message      ****

 length - 18 of 18 bytes

00000000:  3031 3233 3435 3637 3839 6162 6364 6566           '0123456789abcdef'
00000010:  C3A9                                              '..              '



 No more messages
 MQCLOSE
 MQDISC""".splitlines()
    assert [re.sub(r"(PutTime  : '\d{6})\d\d", r"\1..", line) for line in told] == expected


@pytest.mark.parametrize("program", ["amqsput", "amqsget", "amqsgbr", "amqsbcg"])
def test_a_failed_call_is_named_by_its_reason_which_is_the_status(mq: MqPrograms, program: str):
    opened = mq(program, "S.NONE", "QM1")
    assert opened.returncode == 2085 % 256
    assert re.search(r"MQOPEN ended with reason code 2085|MQOPEN failed with CompCode:2, Reason:2085", opened.stdout)
    connected = mq(program, "S.NONE", "NOBODY")
    assert connected.returncode == 2059 % 256
    assert "MQCONN ended with reason code 2059" in connected.stdout
    missing = mq(program)
    assert (missing.returncode, "Required parameter missing - queue name" in missing.stdout) == (99, True)


def test_amqsput_ends_at_a_put_that_is_refused(mq: MqPrograms):
    assert mq.lines("amqsput", "S.FULL", "QM1", stdin="1\n2\n3\n", status=2053 % 256)[2:] == [
        "MQPUT ended with reason code 2053",
        "Sample AMQSPUT0 end",
    ]

"""``dmpmqmsg``: its text files, and messages out of a queue and back with every field of their descriptors."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict

from tests.cli.mq_programs import MqPrograms
from trigmon.cli.mq_commands.message_file import MessageFileError, read, written
from trigmon.mq.descriptors import MessageDescriptor


def described(**fields) -> MessageDescriptor:
    usual = {"accounting_token": bytes(32), "put_ms": 1_774_000_000_120, "msg_id": b"m" * 24, "format": "MQSTR"}
    return MessageDescriptor(**usual | fields)


def read_text(text: str) -> list[tuple[MessageDescriptor, bytes]]:
    return list(read(line.encode() for line in text.splitlines(keepends=True)))


# -- the file -------------------------------------------------------------------------------------------------


def test_a_message_is_written_as_fields_and_data():
    one = described(appl_identity_data="AB", correl_id=b"\x01" * 24, priority=3, persistence=1)
    lines = list(written(one, b"hello \xff" + b"x" * 24, as_text=False))
    assert lines[:12] == [
        *("A VER 2", "A RPT 0", "A MST 8", "A EXP -1", "A FDB 0", "A ENC 546", "A CCS 0", "A FMT MQSTR"),
        *("A PRI 3", "A PER 1", f"A MSI {'6D' * 24}", f"A COI {'01' * 24}"),
    ]
    assert lines[16:23] == [
        f"A ACC {'00' * 32}",
        f"A AIX 4142{'20' * 30}",
        "A PAT 0",
        "A PAN",
        "A PTD 20260320",
        "A PTT 09464012",
        "A AOX 20202020",
    ]
    assert lines[-3:] == [f"X 68656C6C6F20FF{'78' * 18}", f"X {'78' * 6}", ""]
    assert list(written(one, b'say ~"yes"', as_text=True, with_fields=False)) == ['S "say ~~~"yes~""', ""]


@given(st.lists(st.binary(max_size=80), min_size=1, max_size=4), st.booleans())
def test_what_is_written_is_read_back(bodies: list[bytes], as_text: bool):
    one = described(appl_identity_data="who", reply_to_q="R", group_id=b"g" * 24, msg_flags=8)
    text = "".join(f"{line}\n" for body in bodies for line in written(one, body, as_text=as_text))
    assert read_text("* a comment\n" + text) == [(one, body) for body in bodies]


def test_other_forms_and_defaults_are_read():
    text = 'A AID who  \nA FMT MQSTR   \nT one\nT two\nA PRI 2\nX 6869   <hi>\nS " there"\n'
    (one, data), (two, more) = read_text(text)
    assert (one.appl_identity_data, one.format, data) == ("who", "MQSTR", b"one\ntwo")
    assert (two, more) == (MessageDescriptor(priority=2), b"hi there")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("A QQQ 1\n", "line 1: A QQQ"),
        ("A PRI high\n", "line 1"),
        ("X 4\n", "line 1"),
        ("\n\nS text\n", "line 3: S is followed by text in quotes"),
        ("Z\n", "line 1: Z begins no line"),
    ],
)
def test_a_wrong_line_is_named(text: str, told: str):
    with pytest.raises(MessageFileError, match=told):
        read_text(text)


# -- the command ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mq(shared_daemon, tmp_path_factory) -> MqPrograms:
    made = MqPrograms(shared_daemon, tmp_path_factory.mktemp("links"))
    script = "".join(f"DEF QL(M.{name})\n" for name in ("ONE", "TWO", "FOUR", "MOVE"))
    assert made("runmqsc", "QM1", stdin=script).returncode == 0
    return made


def messages(mq: MqPrograms, q_name: str) -> list[tuple[dict, bytes]]:
    with mq.daemon.connect() as qm, qm.open(q_name, "browse") as queue:
        found = [(asdict(message.descriptor), message.data) for message in queue.browse()]
    # PutTime has hundredths of a second.
    return [(fields | {"put_ms": fields["put_ms"] // 10, "accounting_token": 0}, data) for fields, data in found]


def test_messages_go_to_a_file_and_come_back_with_their_descriptors(mq: MqPrograms, tmp_path: Path):
    file = tmp_path / "saved"
    with mq.daemon.connect() as qm:
        for number in range(60):
            qm.put("M.ONE", f"message {number}", correl_id=f"c{number}", priority=number % 10, persistence="persistent")
    counts = mq.lines("dmpmqmsg", "-m", "QM1", "-i", "M.ONE", "-f", str(file))
    assert counts[0].split() == ["Read", "-", "Files:", "0", "Messages:", "60", "Bytes:", "590"]
    assert counts[1].split()[:4] == ["Written", "-", "Files:", "1"]
    refused = mq("dmpmqmsg", "-m", "QM1", "-i", "M.ONE", "-f", str(file))
    assert (refused.returncode, "-F replaces it" in refused.stderr) == (1, True)
    assert mq.lines("dmpmqmsg", "-q", "-m", "QM1", "-o", "M.TWO", "-f", str(file), "-t", "7") == []
    assert messages(mq, "M.TWO") == messages(mq, "M.ONE")
    assert mq.lines("dmpmqmsg", "-q", "-mQM1", "-I", "M.TWO", "-o", "M.FOUR", "-r", "#58") == []
    assert (len(messages(mq, "M.TWO")), len(messages(mq, "M.FOUR"))) == (2, 58)
    shown = mq.lines("dmpmqmsg", "-m", "QM1", "-i", "M.ONE", "-f", "stdout", "-r", "2..3", "-dANHi")
    assert shown == ["* Index 1", 'S "message 19"', "", "* Index 2", 'S "message 29"', ""]


def test_a_message_that_could_not_be_put_stays_where_it_was(mq: MqPrograms):
    with mq.daemon.connect() as qm:
        qm.put("M.MOVE", "stays")
    moved = mq("dmpmqmsg", "-m", "QM1", "-I", "M.MOVE", "-o", "M.NONE")
    assert (moved.returncode, "2085" in moved.stderr) == (1, True)
    assert len(messages(mq, "M.MOVE")) == 1
    for wrong in (["-i", "M.MOVE"], ["-I", "M.MOVE", "-f", "x", "-r", "2"], ["-i", "M.MOVE", "-f", "x", "-d", "z"]):
        assert mq("dmpmqmsg", *wrong).returncode == 2

"""Denials and administrative acts: in the log by stable names, and in a file whose chain shows every change."""

from __future__ import annotations

import gzip
import json
import os
import re
import resource
import signal

import pytest

import trigmon
from tests.daemons import define
from tests.strangers import as_user
from trigmon.audit import FIRST, AuditError, AuditFile, Link, chained, verify
from trigmon.mq import calls
from trigmon.mq.calls import Alter, Clear, Delete, Pause, Put, Set, SetAuthority
from trigmon.mq.replies import Values
from trigmon.mq.rights import ADMIN, Right
from trigmon.rules.call_rights import ACTS
from trigmon.server.audit_log import DENIALS_A_SECOND, without_secrets

ALICE = 5001
READS = {calls.DeadLetters, calls.ReadBackup, calls.EndBackup, calls.ReportWatches, calls.ReportCopy}
"""Administrators' calls that change nothing of anybody's: they read, or a service of the daemon's makes them."""


@pytest.fixture
def one(passable, tmp_path):
    return passable(settings={"server.socket_mode": "0666", "server.audit_file": tmp_path / "audit.jsonl"})


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_acts_are_recorded_with_who_from_where_what_before_and_after(one, tmp_path):
    with one.connect(application="audited") as qm:
        define(qm, "Q", description="first")
        qm.call(Alter(object_type="QLOCAL", name="Q", attributes={"description": "second", "max_q_depth": 7}))
        handle = qm.open("Q", "set").handle
        qm.call(Set(handle=handle, attributes={"trigger_data": "x"}))
        qm.call(Put(q_name="Q", data=b"not in any record"))
        qm.call(calls.Close(handle=handle))
        qm.call(Clear(q_name="Q"))
        qm.ask(SetAuthority(name="queue Q user bob", add=["put"]), Values)
        qm.ask(SetAuthority(name="queue Q user bob", add=["get"]), Values)
        qm.call(Pause(what="everything", reason="upkeep"))
        qm.call(Delete(object_type="QLOCAL", name="Q"))
    acts = one.events("an administrative act")
    assert {act["event_name"] for act in acts} == {"administrative_act"}
    assert [act["call"] for act in acts] == [
        *("Define", "Alter", "Set", "Clear", "SetAuthority", "SetAuthority", "Pause", "Delete"),
    ]
    made, altered, was_set, cleared, granted, more, paused, gone = acts
    for act in acts:
        assert (act["user"], act["uid"], act["application"]) == ("root", 0, "audited")
        assert act["pid"] == os.getpid()
    assert (made["name"], made["before"], made["after"]) == ("Q", {}, {"description": "first"})
    assert altered["before"] == {"description": "first", "max_q_depth": 5000}
    assert altered["after"] == {"description": "second", "max_q_depth": 7}
    assert (was_set["before"], was_set["after"]) == ({"trigger_data": ""}, {"trigger_data": "x"})
    assert (cleared["q_name"], cleared["count"]) == ("Q", 1)
    assert (granted["before"], granted["after"]) == ({}, {"authorities": "put"})
    assert (more["before"], more["after"]) == ({"authorities": "put"}, {"authorities": "put,get"})
    assert (paused["what"], paused["reason"]) == ("everything", "upkeep")
    assert gone["before"]["description"] == "second"
    assert gone["after"] == {}
    recorded = lines(tmp_path / "audit.jsonl")
    assert [(line["number"], line["hash"]) for line in recorded] == [
        (act["audit_number"], act["audit_hash"]) for act in acts
    ]
    assert "not in any record" not in (tmp_path / "audit.jsonl").read_text()
    assert (tmp_path / "audit.jsonl").stat().st_mode & 0o777 == 0o600


def test_a_refused_act_is_a_denial_and_nothing_else(one, tmp_path):
    def work():
        with one.connect() as qm:
            for _ in range(3):
                with pytest.raises(trigmon.NotAuthorized):
                    define(qm, "MINE")

    as_user(ALICE, work)
    denials = one.events("not authorized")
    assert [(denial["event_name"], denial["call"], denial["uid"]) for denial in denials] == [
        ("not_authorized", "Define", ALICE)
    ] * 3
    assert [line["event_name"] for line in lines(tmp_path / "audit.jsonl")] == ["not_authorized"] * 3
    assert one.events("an administrative act") == []


def test_a_client_that_is_denied_in_a_loop_does_not_fill_the_file(one, tmp_path):
    def work():
        with one.connect() as qm:
            for _ in range(500):
                with pytest.raises(trigmon.NotAuthorized):
                    qm.call(Clear(q_name="Q"))

    as_user(ALICE, work)
    with one.connect() as qm:
        define(qm, "Q")
    recorded = lines(tmp_path / "audit.jsonl")
    assert DENIALS_A_SECOND <= len(recorded) < 200
    assert verify([tmp_path / "audit.jsonl"])[0] == len(recorded)


def test_the_chain_goes_on_behind_a_kill_a_torn_line_and_a_rotation(one, tmp_path):
    path, rotated = tmp_path / "audit.jsonl", tmp_path / "audit.jsonl.1"
    with one.connect() as qm:
        define(qm, "A")
    one.kill()
    with path.open("ab") as file:
        file.write(b'{"number":2,"torn')
    one.start()
    with one.connect() as qm:
        define(qm, "B")
        path.rename(rotated)
        define(qm, "C")
    assert [line["name"] for file in (rotated, path) for line in lines(file)] == ["A", "B", "C"]
    done = one.trigmon("audit", "verify", str(rotated), str(path), "--output", "json")
    assert done.returncode == 0, done.stderr
    (last,) = lines(path)
    assert json.loads(done.stdout) == {"lines": 3, "first": 1, "number": 3, "hash": last["hash"]}
    anew = "line 1 does not follow line 3: a chain begins anew"
    broken = one.trigmon("audit", "verify", str(path), str(rotated))
    assert (broken.returncode, broken.stderr) == (1, f"trigmon: {rotated}:1: {anew}\n")


@pytest.fixture
def path(tmp_path):
    file = AuditFile(tmp_path / "audit")
    for number in range(5):
        file.append({"event_name": "administrative_act", "name": f"Q{number}"})
    file.close()
    return tmp_path / "audit"


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: [*rows[:2], rows[2].replace(b"Q2", b"Q9"), *rows[3:]],
        lambda rows: [*rows[:2], *rows[3:]],
        lambda rows: [rows[0], rows[2], rows[1], *rows[3:]],
        lambda rows: [*rows[:3], rows[2], *rows[3:]],
        lambda rows: [*rows[:2], b"{}\n", *rows[2:]],
        lambda rows: [*rows[:4], rows[4][:-1]],
        lambda rows: [*rows[:2], rows[2].replace(b'"number":3', b'"number":4'), *rows[3:]],
        lambda rows: [*rows[:2], chained({"event_name": "x"}, FIRST)[0], *rows[3:]],
    ],
    ids=["changed", "taken out", "moved", "twice", "no record", "torn", "another number", "put in"],
)
def test_every_change_breaks_the_chain(path, change):
    assert verify([path])[0] == 5
    rows = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(change(rows)))
    with pytest.raises(AuditError):
        verify([path])


def test_a_file_that_cannot_be_written_is_an_event_and_stops_nothing(passable, tmp_path):
    one = passable(settings={"server.audit_file": tmp_path})
    with one.connect() as qm:
        define(qm, "Q")
    (failed,) = one.events("the audit file cannot be written")
    assert failed["event_name"] == "audit_failed"
    assert len(one.events("an administrative act")) == 1


def test_secrets_are_in_no_record():
    assert (
        without_secrets("spark.ssl.keyPassword=hunter2 --token: abc x=1")
        == "spark.ssl.keyPassword=*** --token: *** x=1"
    )
    assert without_secrets("postgres://u:hunter2@h/db") == "postgres://u:***@h/db"
    assert without_secrets("see http://u:p@ss@h/x, http://TOKEN@h") == "see http://u:***@h/x, http://***@h"
    assert without_secrets("https://u:p/w@h a@b //c") == "https://u:***@h a@b //c"
    assert without_secrets(7) == 7


def test_every_call_that_needs_a_right_to_administer_is_an_act_or_a_read():
    from tests.server.test_call_rights import NEEDED

    words = {str(right.name) for right in ADMIN & ~Right.DSP} | {"administrators"}
    for kind in calls.AnyCall.__args__:
        needs = NEEDED.get(kind.__struct_config__.tag, "")
        is_administrative = any(word in needs for word in words)
        assert (kind in ACTS or kind in READS) == (is_administrative or kind is Set), kind


def file_with(path, count=1):
    """An audit file with so many lines, which is open."""
    file = AuditFile(path)
    for number in range(count):
        file.append({"event_name": "administrative_act", "name": f"Q{number}"})
    return file


@pytest.mark.parametrize(
    "change",
    [
        lambda line: line.replace(b'"name":', b'"name": '),
        lambda line: line.replace(b'"name":"Q1"', b'"name":"EVIL","name":"Q1"'),
        lambda line: line.replace(b"Q1", b"\\u0051\\u0031"),
        lambda line: b" " + line,
        lambda line: line.replace(b'"number":2', b'"number":2.0'),
    ],
    ids=["a blank", "a second name", "escapes", "a blank before", "another form of the number"],
)
def test_a_line_that_reads_alike_and_has_other_bytes_breaks_the_chain(path, change):
    rows = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([rows[0], change(rows[1]), *rows[2:]]))
    with pytest.raises(AuditError, match=":2: "):
        verify([path])


def test_a_line_that_the_disk_had_no_room_for_is_taken_off_and_the_chain_goes_on(tmp_path):
    path = tmp_path / "audit"
    file = file_with(path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 20, hard))  # 20 bytes of the line are written
    try:
        for _ in range(3):
            with pytest.raises(AuditError):
                file.append({"event_name": "administrative_act", "name": "lost"})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    file.append({"event_name": "administrative_act", "name": "behind it"})
    assert [line["name"] for line in lines(path)] == ["Q0", "behind it"]
    assert verify([path])[0] == 2


def test_the_chain_goes_on_in_a_file_that_was_copied_and_emptied(tmp_path):
    path, copy = tmp_path / "audit", tmp_path / "audit.1"
    file = file_with(path, 3)
    copy.write_bytes(path.read_bytes())
    os.truncate(path, 0)
    file.append({"event_name": "administrative_act", "name": "next"})
    assert verify([copy, path])[0] == 4


def test_the_chain_goes_on_behind_a_rotation_while_it_was_stopped(tmp_path):
    path, rotated = tmp_path / "audit", tmp_path / "audit.1"
    file_with(path, 3).close()
    path.rename(rotated)
    path.touch()
    file_with(path, 1)
    assert verify([rotated, path])[0] == 4


@pytest.mark.parametrize(
    ("rotated", "older"),
    [
        ("audit.jsonl-20261125", "audit.jsonl.1"),
        ("audit.jsonl.1", "audit.jsonl-20261125"),
        ("audit.jsonl-20261125-1764028800", "audit.jsonl-20261124.gz"),
        ("audit.jsonl.2026-11-25", "audit.jsonl.2"),
        ("audit-20261125.jsonl", "audit-20261124.jsonl"),
        ("audit.1.jsonl", "audit.2.jsonl.gz"),
    ],
)
def test_a_start_behind_a_rotation_goes_on_behind_the_last_line_of_any_part(tmp_path, rotated, older):
    path = tmp_path / "audit.jsonl"
    file_with(path, 3).close()
    first = tmp_path / "first"
    first.write_bytes(path.read_bytes())
    (tmp_path / older).write_bytes(gzip.compress(path.read_bytes()) if older.endswith("gz") else path.read_bytes())
    os.utime(tmp_path / older, (1, 1))
    path.rename(tmp_path / "audit.jsonl.3")
    file_with(path, 2).close()
    path.rename(tmp_path / rotated)
    for other in ("audit.jsonl.4", "audit.jsonl.last", "audit2.jsonl", "audit.jsonl-qm2", "1audit.jsonl"):
        (tmp_path / other).write_bytes(b"")
    file_with(path, 1).close()
    assert verify([first, tmp_path / rotated, path]) == (6, Link(6, lines(path)[0]["hash"]))


@pytest.mark.parametrize("ending", ["1.gz", "1.zst"])
def test_a_part_that_cannot_be_read_and_is_the_newest_is_named_and_no_chain_begins_anew(tmp_path, ending):
    path, packed = tmp_path / "audit.jsonl", tmp_path / f"audit.jsonl.{ending}"
    file_with(path, 3).close()
    path.rename(tmp_path / "audit.jsonl.2")
    os.utime(tmp_path / "audit.jsonl.2", (1, 1))
    file_with(path, 2).close()
    plain = path.read_bytes()
    path.unlink()
    packed.write_bytes(gzip.compress(plain)[:-9])
    for _ in range(2):
        with pytest.raises(AuditError, match=rf"{re.escape(str(packed))}: .*decompress it .*or move it away"):
            AuditFile(path)
    assert path.read_bytes() == b""
    packed.unlink()
    (tmp_path / "audit.jsonl.1").write_bytes(plain)
    file_with(path, 1).close()
    assert verify([tmp_path / "audit.jsonl.2", tmp_path / "audit.jsonl.1", path])[0] == 6


def test_a_start_goes_on_behind_the_newest_part_though_all_are_compressed(tmp_path):
    path, parts = tmp_path / "audit.jsonl", []
    for number in (3, 2, 1):
        file_with(path, number).close()
        parts.append(tmp_path / f"audit.jsonl.{number}.gz")
        parts[-1].write_bytes(gzip.compress(path.read_bytes()))
        os.utime(parts[-1], (1000 - number, 1000 - number))
        path.unlink()
    file_with(path, 1).close()
    assert verify([*parts, path]) == (7, Link(7, lines(path)[0]["hash"]))


def test_a_part_whose_compression_was_cut_short_is_read_as_it_was_before(tmp_path):
    path, plain = tmp_path / "audit.jsonl", tmp_path / "audit.jsonl.1"
    file_with(path, 3).close()
    path.rename(plain)
    os.utime(plain, (1, 1))
    (tmp_path / "audit.jsonl.1.gz").write_bytes(gzip.compress(plain.read_bytes())[:-9])
    file_with(path, 1).close()
    assert verify([plain, path])[0] == 4


def test_a_compressed_part_that_is_no_whole_one_fails_the_check(tmp_path):
    path, part = tmp_path / "audit.jsonl", tmp_path / "audit.jsonl.1.gz"
    file_with(path, 3).close()
    for content in (gzip.compress(path.read_bytes())[:-9], b"\x1f\x8b\x08" + b"no deflate" * 9, b"plain"):
        part.write_bytes(content)
        with pytest.raises(AuditError, match=rf"{re.escape(str(part))}: it is no whole file of gzip"):
            verify([part])


def test_verify_says_from_which_line_on_the_files_are_and_what_began_anew(one, path, tmp_path):
    rows = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(rows[2:]))
    hash_ = lines(path)[-1]["hash"]
    done = one.trigmon("audit", "verify", str(path))
    assert done.stdout == (
        f"3 lines are as they were written, number 3 to 5; the last has hash {hash_}. "
        "Lines 1 to 2 are not in these files\n"
    )
    anew = tmp_path / "anew"
    file_with(anew).close()
    broken = one.trigmon("audit", "verify", str(path), str(anew))
    assert broken.stderr == f"trigmon: {anew}:1: line 1 does not follow line 5: a chain begins anew\n"


def test_a_file_has_one_writer(tmp_path):
    path = tmp_path / "audit"
    first = file_with(path)
    with pytest.raises(AuditError, match="another process"):
        AuditFile(path)
    path.rename(tmp_path / "audit.1")
    second = file_with(path)
    with pytest.raises(AuditError, match="another process"):
        first.append({"event_name": "administrative_act"})
    second.append({"event_name": "administrative_act"})
    second.close()
    first.append({"event_name": "administrative_act"})
    assert verify([path])[0] == 3


@pytest.mark.parametrize("content", [b"a list of something else", b"x\n" * 9 + b"the end", b"[1]\n", b"{}\n"])
def test_a_file_that_is_no_audit_file_is_refused_as_it_is(tmp_path, content):
    path = tmp_path / "something"
    path.write_bytes(content)
    with pytest.raises(AuditError):
        AuditFile(path)
    assert path.read_bytes() == content


def test_a_symbolic_link_and_a_fifo_are_refused(tmp_path):
    victim, link, fifo = tmp_path / "victim", tmp_path / "link", tmp_path / "fifo"
    file_with(victim).close()
    link.symlink_to(victim)
    os.mkfifo(fifo)
    for path in (link, fifo):
        with pytest.raises(AuditError):
            AuditFile(path)
    file = file_with(tmp_path / "audit")
    (tmp_path / "audit").unlink()
    (tmp_path / "audit").symlink_to(victim)
    with pytest.raises(AuditError):
        file.append({"event_name": "administrative_act"})
    assert verify([victim])[0] == 1


def test_a_record_that_is_too_long_is_cut_and_the_chain_goes_on(tmp_path):
    path = tmp_path / "audit"
    file = file_with(path)
    file.append({"event_name": "administrative_act", "add": ["word" * 100] * 9000, "user": "root"})
    file.close()
    file_with(path).close()
    first, cut, last = lines(path)
    assert (cut["user"], cut["event_name"]) == ("root", "administrative_act")
    assert len(cut["add"]) < 2000
    assert (first["name"], last["name"]) == ("Q0", "Q0")
    assert verify([path])[0] == 3

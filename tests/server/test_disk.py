"""A disk that is nearly full refuses puts in good time, and everything else goes on."""

import contextlib
import os
import resource
import subprocess

import pytest

import trigmon
from tests.daemons import define
from tests.waiting import until
from trigmon.mq.calls import Status
from trigmon.mq.replies import Values
from trigmon.server import disk
from trigmon.server.disk import LEAST, LOOK_S, DiskReserve


def test_under_the_reserve_puts_are_refused_and_gets_go_on(daemon):
    one = daemon()
    with one.connect() as qm:
        define(qm, "Q", def_persistence="persistent")
        qm.put("Q", b"kept")
    one.stop()
    one.settings["store.disk_reserve"] = 10**18
    with one.start().connect() as qm:
        with pytest.raises(trigmon.StorageMediumFull) as refused:
            qm.put("Q", b"refused")
        assert refused.value.reason == 2192
        with qm.open("Q", "input_shared") as q:
            assert [message.data for message in q.drain()] == [b"kept"]
    (row,) = one.events("puts are refused: the disk is nearly full")
    assert row["disk_reserve"] == 10**18


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 64 MiB of its own."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a file system")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", tmp_path], check=False)
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    yield tmp_path
    subprocess.run(["umount", "--lazy", tmp_path], check=True)


def test_a_disk_filled_by_puts_loses_nothing_and_has_room_again_after_gets(small_disk, daemon):
    one = daemon(home=small_disk, settings={"store.disk_reserve": "40 MiB"})
    body = b"x" * 50_000
    put = 0
    with one.connect() as qm, one.connect() as other:
        define(qm, "Q", def_persistence="persistent")
        with qm.open("Q", "input_shared", "output") as q:
            other.put("Q", body, syncpoint=True)
            with pytest.raises(trigmon.StorageMediumFull):
                while put < 1000:
                    q.put(body)
                    put += 1
            assert put > 50
            # A unit of work that was begun before ends as it was meant to, and so does one of gets.
            other.commit()
            q.get(syncpoint=True)
            qm.backout()
            q.get(syncpoint=True)
            qm.commit()
            assert sum(len(message.data) == len(body) for message in q.drain(batch=10)) == put
    assert one.stop() == 0


def test_the_disk_is_looked_at_once_in_a_while_and_changes_are_reported(tmp_path, monkeypatch):
    collected = []
    looked = []
    few, most = LEAST + 100, LEAST + 101
    reserve = DiskReserve(tmp_path, few, lambda allowed, free: collected.append((allowed, free)))
    reserve.free = lambda: looked.append(1) or free
    for moment, free in enumerate((most, few, few, most)):
        monkeypatch.setattr(disk.time, "monotonic", lambda moment=moment: moment * 2 * LOOK_S)
        assert reserve.puts_allowed() == reserve.puts_allowed() == (free > few)
    assert collected == [(False, few), (True, most)]
    assert len(looked) == 4


def test_a_store_that_fails_at_the_orderly_end_is_reported_to_have_failed(daemon):
    one = daemon()
    with one.connect() as qm:
        define(qm, "Q", def_persistence="persistent")
        qm.put("Q", b"kept")
    # No file of the daemon may grow over what its log needs: the last checkpoint fails as on a broken disk.
    resource.prlimit(one.process.pid, resource.RLIMIT_FSIZE, (16_384, resource.RLIM_INFINITY))
    assert one.stop() == 70
    assert one.events("the store failed; what became of the last calls is unknown")
    with one.start().connect() as qm, qm.open("Q", "input_shared") as q:
        assert [message.data for message in q.drain()] == [b"kept"]


def fill(directory):
    """A neighbour takes every byte that is left."""
    for size in (1 << 20, 4096, 1):
        with (directory / "neighbour").open("ab", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(b"\0" * size)


def put_until_refused(q, body, most):
    """How many were put."""
    for put in range(most):
        try:
            q.put(body)
        except trigmon.StorageMediumFull:
            return put
    raise AssertionError("it was never full")


@pytest.mark.parametrize("size", [pytest.param(100, marks=pytest.mark.slow), 50_000])
@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_full_store_is_started_on_a_full_disk_and_emptied_and_goes_on(small_disk, daemon, end, size):
    one = daemon(home=small_disk, settings={"store.disk_reserve": 0})
    body = b"x" * size
    if size < 1000:  # small messages need not fill all of it
        (small_disk / "ballast").write_bytes(b"\0" * (50 << 20))
    with one.connect() as qm:
        define(qm, "Q", def_persistence="persistent", max_q_depth=1_000_000)
        with qm.open("Q", "output") as q:
            put = put_until_refused(q, body, 1_000_000)
    assert put > 20
    fill(small_disk)
    getattr(one, end)()
    fill(small_disk)
    with one.start().connect() as qm, qm.open("Q", "input_shared", "output") as q:
        with pytest.raises(trigmon.StorageMediumFull):
            q.put(body)
        assert sum(len(message.data) == size for message in q.drain(batch=10)) == put
        (small_disk / "neighbour").unlink()
        until(lambda: (one.data / "spare").exists())
        q.put(body)
        assert q.get().data == body
    assert one.stop() == 0


@pytest.mark.parametrize("failing", ["full", "read-only", "no file"])
def test_a_data_directory_that_cannot_be_opened_now_ends_with_70_and_is_opened_later(small_disk, daemon, failing):
    one = daemon(home=small_disk / "home", start=False)
    one.home.mkdir()
    one.log = small_disk.with_name(f"{small_disk.name}.log")
    runtime = {"TRIGMON_RUNTIME": str(small_disk.with_name(f"{small_disk.name}.run"))}
    if failing == "no file":
        one.data.write_text("")
        assert one.launch(env=one.env | runtime).wait() == 2
        return
    if failing == "full":
        fill(small_disk)
    else:
        subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    assert one.launch(env=one.env | runtime).wait() == 70
    assert str(one.data) in one.events("the queue manager cannot start")[0]["why"]
    if failing == "full":
        (small_disk / "neighbour").unlink()
    else:
        subprocess.run(["mount", "-o", "remount,rw", small_disk], check=True)
    one.launch(env=one.env | runtime)
    one.wait_for_event("ready")
    assert one.stop() == 0


def test_a_small_reserve_counts_as_what_a_turn_needs(tmp_path):
    for free, allowed in ((LEAST, False), (LEAST + 1, True)):
        reserve = DiskReserve(tmp_path, 0, lambda *_: None)
        reserve.free = lambda free=free: free
        assert reserve.puts_allowed() is allowed


def test_an_archive_that_cannot_be_written_is_a_finding_and_in_the_log_and_puts_go_on(daemon, tmp_path):
    archive = tmp_path / "archive"
    archive.write_text("a file where the directory should be")
    one = daemon(settings={"store.journal_archive": archive})
    event = one.wait_for_event("the journal is not archived")
    assert (event["event_name"], str(archive) in event["what"]) == ("journal_not_archived", True)

    def findings(qm):
        return [each["kind"] for each in qm.ask(Status(), Values).values["attention"]]

    with one.connect() as qm:
        define(qm, "Q", def_persistence="persistent")
        qm.put("Q", b"goes on")
        assert "not_archived" in findings(qm)
        archive.unlink()
        archive.mkdir()
        assert "is backed up" in one.trigmon("backup", str(tmp_path / "first.backup")).stdout
        one.wait_for_event("the journal is archived again")
        assert "is backed up" in one.trigmon("backup", str(tmp_path / "second.backup")).stdout
        assert "not_archived" not in findings(qm)

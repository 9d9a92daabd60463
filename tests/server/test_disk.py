"""A disk that is nearly full refuses puts in good time, and everything else goes on."""

import os
import resource
import subprocess

import pytest

import trigmon
from tests.daemons import define
from trigmon.server.disk import DiskReserve


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
    (said,) = one.events("puts are refused: the disk is nearly full")
    assert said["disk_reserve"] == 10**18


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


def test_the_disk_is_looked_at_once_a_turn_and_changes_are_told(tmp_path):
    told = []
    looked = []
    reserve = DiskReserve(tmp_path, 100, lambda allowed, free: told.append((allowed, free)))
    reserve.free = lambda: looked.append(1) or free
    for free in (101, 100, 100, 101):
        reserve.new_turn()
        assert reserve.puts_allowed() == reserve.puts_allowed() == (free > 100)
    assert told == [(False, 100), (True, 101)]
    assert len(looked) == 4


def test_a_store_that_fails_at_the_orderly_end_is_said_to_have_failed(daemon):
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

"""Watches of a real queue manager: each file becomes one message."""

import json
import os
import threading
import time
from hashlib import sha256
from pathlib import Path

import pytest

from tests.waiting import until
from tests.watches.watched_queue import WatchedQueue
from trigmon.mq.calls import Delete, DisplayConnections, Open, Pause, Resume
from trigmon.mq.enums import OpenOption
from trigmon.mq.errors import ObjectInUse
from trigmon.mq.names import RECORD_QUEUE


@pytest.fixture
def watched(daemon, tmp_path):
    def make(**attributes):
        return WatchedQueue(daemon(), tmp_path / "in", **attributes)

    return make


def test_a_file_becomes_one_message_and_lies_in_done(watched):
    it = watched()
    it.put_file("a.csv", b"1,2")
    assert it.until_delivered(1) == ["a.csv"]
    (body,) = it.bodies()
    message = json.loads(body)
    assert message["path"] == str(it.directory / "done" / "a.csv")
    assert message["sha256"] == sha256(b"1,2").hexdigest()
    it.each_once(["a.csv"])
    state = it.until_state(messages_put=1, files_waiting=0)
    assert (state["state"], state["last_file"], state["problem"]) == ("watching", "a.csv", "")


def test_files_that_are_there_at_the_start_are_taken_the_oldest_first(daemon, tmp_path):
    place = tmp_path / "in"
    place.mkdir()
    for at, name in enumerate(("c", "a", "b")):
        (place / name).write_bytes(b"x")
        os.utime(place / name, (at, at))
    it = WatchedQueue(daemon(), place)
    assert it.until_delivered(3) == ["c", "a", "b"]


def test_a_file_is_left_until_it_has_been_quiet(watched):
    it = watched(quiet_s=2)
    path = it.directory / "growing"
    ends = time.monotonic() + 5
    with path.open("ab", buffering=0) as file:
        while time.monotonic() < ends:
            file.write(b"x" * 100)
            assert it.bodies() == []
            time.sleep(0.2)
        written = file.tell()
    it.until_delivered(1)
    assert json.loads(it.bodies()[0])["size"] == written


def test_the_same_name_again_is_another_file(watched):
    it = watched()
    it.put_file("a", b"1")
    it.until_delivered(1)
    it.put_file("a", b"2")
    it.until_delivered(2)
    paths = [json.loads(body)["path"] for body in it.bodies()]
    assert [Path(path).read_bytes() for path in paths] == [b"1", b"2"]


def test_a_full_queue_is_waited_for(watched):
    it = watched()
    it.alter("Q", "QLOCAL", max_q_depth=2)
    for name in "abc":
        it.put_file(name)
    it.until_hindered("2053")
    assert it.attention("watch")
    it.alter("Q", "QLOCAL", max_q_depth=10)
    it.until_delivered(3)
    it.each_once(["a", "b", "c"])
    it.until_state(problem="")
    assert it.attention("watch") == []


def test_an_inhibited_queue_is_waited_for(watched):
    it = watched()
    it.alter("Q", "QLOCAL", inhibit_put="inhibited")
    it.put_file("a")
    it.until_hindered("2051")
    it.alter("Q", "QLOCAL", inhibit_put="allowed")
    it.until_delivered(1)
    it.each_once(["a"])


def test_a_file_too_long_for_a_message_is_put_aside_and_the_others_go_on(watched):
    it = watched(content="body")
    it.alter("Q", "QLOCAL", max_msg_length=1000)
    it.put_file("long", b"x" * 1001)
    it.put_file("short", b"x" * 1000)
    until(lambda: it.bodies() == [b"x" * 1000])
    assert [path.name for path in (it.directory / "failed").iterdir()] == ["long"]
    it.until_state(files_failed=1)
    (finding,) = it.attention("bad_files")
    assert finding["name"] == "W"


def test_a_file_that_has_grown_too_long_for_a_message_on_its_way_hinders_no_other(watched):
    it = watched(content="body")
    it.alter("Q", "QLOCAL", max_msg_length=1000, inhibit_put="inhibited")
    it.put_file("long", b"x")
    it.until_state(files_taken=1)
    with (it.directory / "done" / "long").open("ab") as file:
        file.write(b"x" * 1000)
    it.alter("Q", "QLOCAL", inhibit_put="allowed")
    it.put_file("short", b"short")
    until(lambda: it.bodies() == [b"short"])
    state = it.until_hindered("done/long: its 1001 bytes are more than the 1000 of a message")
    assert state["files_taken"] == 1
    it.alter("Q", "QLOCAL", max_msg_length=2000)
    until(lambda: it.bodies() == [b"short", b"x" * 1001])
    it.until_state(files_taken=0, problem="")


def test_a_file_that_is_written_to_all_the_time_waits_alone(watched):
    it = watched()
    it.alter("Q", "QLOCAL", inhibit_put="inhibited")
    it.put_file("endless")
    it.until_state(files_taken=1)
    ends = threading.Event()

    def write():
        with (it.directory / "done" / "endless").open("ab", buffering=0) as file:
            file.write(b"x" * (64 << 20))  # read for so long that it changes meanwhile
            while not ends.wait(0.001):
                file.write(b"x")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        it.until_hindered("done/endless: it is being written to")
        it.alter("Q", "QLOCAL", inhibit_put="allowed")
        it.put_file("other")
        until(lambda: it.names() == ["other"])
    finally:
        ends.set()
        writer.join()
    assert it.until_delivered(2) == ["other", "endless"]


def test_a_paused_watch_leaves_files_where_they_are(watched):
    it = watched()
    with it.daemon.connect() as qm:
        qm.call(Pause(what="watch", name="W", reason="the other side is down"))
    time.sleep(2)  # a paused watch is told within a second
    it.put_file("a")
    time.sleep(2)
    assert (it.bodies(), it.waiting(), it.state()["state"]) == ([], ["a"], "paused")
    with it.daemon.connect() as qm:
        qm.call(Resume(what="watch", name="W"))
    it.until_delivered(1)
    it.each_once(["a"])


def test_a_directory_that_is_missing_is_waited_for(watched):
    it = watched()
    it.until_state(state="watching")
    it.directory.rename(it.directory.with_name("away"))
    it.until_hindered("No such file")
    it.directory.with_name("away").rename(it.directory)
    it.put_file("a")
    it.until_delivered(1)


def test_done_on_another_file_system_is_reported(watched, tmp_path):
    if Path("/dev/shm").stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("/dev/shm is on the file system of the temporary directory")
    it = watched(done=f"/dev/shm/trigmon-test-{os.getpid()}")
    it.put_file("a")
    try:
        it.until_hindered("another file system")
        assert it.waiting() == ["a"]
        it.alter(done="")
        it.until_delivered(1)
    finally:
        Path(f"/dev/shm/trigmon-test-{os.getpid()}").rmdir()


def test_a_watch_that_is_altered_goes_on_in_the_new_directory(watched, tmp_path):
    it = watched()
    other = tmp_path / "other"
    other.mkdir()
    (other / "b.txt").write_bytes(b"x")
    (other / "b.csv").write_bytes(b"x")
    it.alter(directory=str(other), pattern="*.csv")
    assert it.until_delivered(1) == ["b.csv"]
    assert (other / "b.txt").exists()


def test_files_on_their_way_are_finished_when_the_watch_is_deleted(watched):
    it = watched()
    it.alter("Q", "QLOCAL", inhibit_put="inhibited")
    it.put_file("a")
    it.until_hindered("2051")
    with it.daemon.connect() as qm:
        qm.call(Delete(object_type="WATCH", name="W"))
    until(lambda: it.state() == {})
    (finding,) = it.attention("watch")
    assert "1 file on the way" in finding["text"]
    it.daemon.kill()
    it.daemon.start()
    it.alter("Q", "QLOCAL", inhibit_put="allowed")
    it.until_delivered(1)
    assert it.done() == ["a"]
    until(lambda: it.attention("watch") == [])


def test_many_files_at_once_become_as_many_messages(watched):
    it = watched()
    names = [f"f{number:04}" for number in range(1500)]
    for name in names:
        it.put_file(name)
    it.until_delivered(len(names))
    it.each_once(names)


def test_a_kill_of_either_process_loses_no_file_and_doubles_none(watched):
    it = watched()
    names = []
    for round_ in range(4):
        for number in range(150):
            names.append(f"f{round_}-{number}")
            it.put_file(names[-1])
        if round_ % 2:
            it.daemon.kill()
            it.daemon.start()
        else:
            it.kill_process()
    it.until_delivered(len(names))
    it.each_once(names)


def test_no_second_process_serves_the_watches(watched):
    it = watched()
    with it.daemon.connect() as qm:
        # Who serves connects first, and opens the queue behind that.
        until(lambda: any(RECORD_QUEUE in row["open"] for row in qm.call(DisplayConnections()).rows))
        with pytest.raises(ObjectInUse):
            qm.call(Open(object_name=RECORD_QUEUE, options=OpenOption.INPUT_EXCLUSIVE))


def test_without_the_setting_nobody_serves_and_the_status_says_so(daemon, tmp_path):
    made = daemon(settings={"server.watches": "false"})
    it = WatchedQueue(made, tmp_path / "in")
    it.put_file("a")
    assert it.until_state(state="unserved")["files_waiting"] == 0

"""What a driver's log and its web server tell, read and added up."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time

import msgspec
import pytest

from trigmon.launch.spark import driver_status, log_lines, web

LOG = """\
26/11/21 19:56:54 INFO DriverWrapper: Driver address: 10.77.0.11:38779
26/11/21 19:56:57 INFO JettyUtils: Start Jetty {bound}:4040 for SparkUI
26/11/21 19:56:57 WARN Utils: Service 'SparkUI' could not bind on port 4040. Attempting port 4041.
26/11/21 19:56:57 INFO Utils: Successfully started service 'SparkUI' on port 4041.
26/11/21 19:56:58 INFO StandaloneSchedulerBackend: Connected to Spark cluster with app ID app-20261121195658-0000
"""


def job(number, tasks=4, done=4, stages=(1, 2), stages_done=2, skipped=0, failed=0, tags=()):
    return driver_status._Job(
        jobId=number,
        stageIds=list(stages),
        jobTags=list(tags),
        numTasks=tasks,
        numCompletedTasks=done,
        numSkippedTasks=0,
        numFailedTasks=failed,
        numCompletedStages=stages_done,
        numSkippedStages=skipped,
    )


def stage(number, read=0, written=0, began=""):
    return driver_status._Stage(stageId=number, inputRecords=read, outputRecords=written, firstTaskLaunchedTime=began)


def test_the_log_tells_the_application_and_the_port_that_its_server_came_to():
    assert log_lines.application_in(LOG) == "app-20261121195658-0000"
    assert log_lines.ui_in(LOG.format(bound="10.77.0.1")) == "http://10.77.0.1:4041"
    assert log_lines.ui_in(LOG.format(bound="0.0.0.0")) == "http://10.77.0.11:4041"
    assert log_lines.ui_in("") == log_lines.application_in("") == ""


def test_jobs_and_stages_add_up_to_what_is_done_of_what_is_known():
    tally = driver_status.Tally(driver_status.Where("http://h:1"))
    began = "2026-11-21T19:56:56.140GMT"
    seen = tally.taken(
        [job(0), job(1, tasks=10, done=3, stages=(3, 4, 5), stages_done=1, skipped=1, failed=2)],
        [stage(1, read=10), stage(3, written=7, began=began), stage(4, began="2026-11-21T00:00:00.000GMT")],
    )
    assert (seen.jobs, seen.stages_done, seen.stages, seen.tasks_done, seen.tasks, seen.tasks_failed) == (
        2,
        3,
        4,
        7,
        14,
        2,
    )
    assert (seen.rows_read, seen.rows_written) == (10, 7)
    assert seen.first_rows_ms == 1_795_291_016_140


def test_what_the_driver_has_forgotten_is_still_counted():
    tally = driver_status.Tally(driver_status.Where("http://h:1"))
    tally.taken([job(number) for number in range(3)], [stage(1, read=5), stage(2, read=6)])
    seen = tally.taken([job(number) for number in range(1, 4)], [stage(2, read=8), stage(3, read=1)])
    assert (seen.jobs, seen.tasks_done, seen.rows_read) == (4, 16, 14)
    assert tally.taken([], []).jobs == 4


def test_of_a_shared_server_only_the_jobs_with_the_runs_tag_count():
    tally = driver_status.Tally(driver_status.Where("http://h:1", tag="Session_a_Tag_r"))
    mine = job(0, stages=(1,), tags=["SparkConnect_SessionTag_User_u_Session_a_Tag_r"])
    other = job(1, stages=(2,), tags=["SparkConnect_SessionTag_User_u_Session_b_Tag_s"])
    seen = tally.taken([mine, other], [stage(1, read=1), stage(2, read=10)])
    assert (seen.jobs, seen.rows_read) == (1, 1)


def test_a_process_tells_the_ports_on_which_it_listens():
    with socket.socket() as one, socket.socket(socket.AF_INET6) as other, socket.socket() as idle:
        one.bind(("127.0.0.1", 0))
        one.listen()
        other.bind(("::1", 0))
        other.listen()
        idle.bind(("127.0.0.1", 0))
        found = driver_status.ports_of(os.getpid())
        assert {one.getsockname()[1], other.getsockname()[1]} <= found
        assert idle.getsockname()[1] not in found
    assert driver_status.ports_of(0) == set()


def test_a_port_that_the_log_names_and_the_process_does_not_have_is_not_asked():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        one.listen()
        port = one.getsockname()[1]
        log = LOG.replace("4041", str(port)).format(bound="0.0.0.0").replace("DriverWrapper", "")
        assert driver_status.of_local_driver(log, os.getpid()) == f"http://127.0.0.1:{port}"
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        assert driver_status.of_local_driver(log, os.getpid()) == ""


def test_a_server_that_trickles_is_left_when_the_time_is_over():
    with socket.create_server(("127.0.0.1", 0)) as slow:
        began = time.monotonic()
        with pytest.raises(web.NoAnswerError):
            web.ask(f"http://127.0.0.1:{slow.getsockname()[1]}/", 0.3)
        assert time.monotonic() - began < 10


def test_one_whose_head_trickles_is_left_as_well():
    over = threading.Event()

    def trickle():
        link, _ = slow.accept()
        with link, contextlib.suppress(OSError):
            link.sendall(b"HTTP/1.1 200 OK\r\nX: ")
            while not over.wait(0.05):
                link.sendall(b"x")

    with socket.create_server(("127.0.0.1", 0)) as slow:
        thread = threading.Thread(target=trickle)
        thread.start()
        # Far above the deadline, far below the time that so long a head would take.
        timer = threading.Timer(20, over.set)
        timer.start()
        try:
            with pytest.raises(web.NoAnswerError, match="timed out"):
                web.ask(f"http://127.0.0.1:{slow.getsockname()[1]}/", 0.5)
            assert not over.is_set()
        finally:
            over.set()
            timer.cancel()
            thread.join()


@pytest.mark.parametrize(
    "answer",
    [
        b'[{"id": "../x", "attempts": []}]',
        b'{"no": "list"}',
        b"<html>",
        b'[{"id": 3}]',
        b'[{"id": "x", "attempts": [{"startTimeEpoch": 300000000000000}]}]',
    ],
)
def test_what_is_no_application_is_refused(answer, tmp_path):
    from tests.launch.spark.masters import Master

    class Odd(Master):
        def answer(self, request):
            self._send(request, 200, answer)

    one = Odd()
    try:
        with pytest.raises((ValueError, msgspec.DecodeError)):
            driver_status.application(one.address, 5)
    finally:
        one.close()


def test_numbers_that_no_queue_manager_could_be_sent_are_refused_and_sums_have_an_end():
    with pytest.raises(ValueError, match="inputRecords"):
        msgspec.json.decode(b'[{"stageId": 1, "inputRecords": 36893488147419103232}]', type=list[driver_status._Stage])
    with pytest.raises(ValueError, match="numTasks"):
        msgspec.json.decode(b'[{"jobId": 1, "numTasks": -1}]', type=list[driver_status._Job])
    seen = driver_status.Tally(driver_status.Where("http://h:1")).taken(
        [], [stage(n, read=driver_status.MOST) for n in range(1 << 12)]
    )
    assert seen.rows_read == driver_status.MOST
    msgspec.msgpack.encode(seen)


@pytest.mark.parametrize("url", ["http://[::1/x", "http://a\x01b:80/", "http://h:99999/", "ftp://h/", "http:///"])
def test_what_is_no_address_is_not_reached(url):
    with pytest.raises(web.NotReachedError):
        web.ask(url, 1)


def test_where_a_process_may_not_be_looked_at_its_log_leads_to_sparks_own_ports_of_this_machine_alone():
    nobodys = 2**22 + 1
    log = LOG.format(bound="10.9.8.7").replace("DriverWrapper", "")
    assert driver_status.of_local_driver(log, nobodys) == "http://127.0.0.1:4041"
    assert driver_status.of_local_driver(log.replace("4041", "22"), nobodys) == ""

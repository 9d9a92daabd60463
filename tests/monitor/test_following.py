"""What the follower notes of applications whose drivers answer, do not, or answer nonsense."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.waiting import until
from trigmon.launch.launch_plan import Lead
from trigmon.monitor.spark_servers.progress_poller import ProgressPoller

APP = "app-20261121195658-0000"


class Driver:
    """A driver's web server; ``answers`` by the last part of the path, ``asked`` in order."""

    def __init__(self):
        self.asked = []
        began = {"startTimeEpoch": 1_795_291_016_140}
        self.answers = {"applications": [{"id": APP, "attempts": [began]}], "jobs": [], "stages": []}
        self.over = threading.Event()
        self.is_silent = False
        ours = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(self):
                name = self.path.rpartition("/")[2]
                ours.asked.append(name)
                if ours.is_silent:
                    ours.over.wait(30)
                    return
                body = json.dumps(ours.answers[name]).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def does(self, done):
        self.answers["jobs"] = [{"jobId": 0, "stageIds": [0], "numTasks": 4, "numCompletedTasks": done}]

    def close(self):
        self.over.set()
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def driver():
    one = Driver()
    yield one
    one.close()


class Seen:
    """A follower, and all that it has noted."""

    def __init__(self):
        self.woken = 0
        self.follower = ProgressPoller(self.wake)
        self.notes = []

    def wake(self):
        self.woken += 1

    def of(self, run, name):
        self.notes += self.follower.notes()
        return [fields[name] for of, fields in self.notes if of == run and name in fields]


@pytest.fixture
def seen():
    one = Seen()
    yield one
    one.follower.stop()


def test_the_application_is_noted_before_its_driver_can_be_asked(seen):
    seen.follower.follow("r", lambda: Lead(APP))
    assert until(lambda: seen.of("r", "application_id")) == [APP]
    assert seen.woken == 1


def test_how_far_it_is_is_noted_when_that_changes_and_only_then(seen, driver):
    driver.does(1)
    seen.follower.follow("r", lambda: Lead("", driver.url))
    until(lambda: seen.of("r", "progress"))
    assert seen.of("r", "application_id") == [APP]
    assert seen.of("r", "application_ms") == [1_795_291_016_140]
    until(lambda: driver.asked.count("jobs") >= 3)
    driver.does(3)
    until(lambda: len(seen.of("r", "progress")) == 2)
    assert [each["tasks_done"] for each in seen.of("r", "progress")] == [1, 3]


def test_a_driver_that_does_not_answer_keeps_no_other_waiting_for_long(seen, driver):
    mute = Driver()
    try:
        mute.is_silent = True
        driver.does(2)
        for number in range(3):
            seen.follower.follow(f"mute{number}", lambda: Lead("", mute.url))
        seen.follower.follow("r", lambda: Lead("", driver.url))
        until(lambda: seen.of("r", "progress"))
        asked, now = len(mute.asked), time.monotonic()
        until(lambda: driver.asked.count("jobs") >= 5)
        # Each question to a mute one costs a second, and after it that one is left alone for twenty.
        assert len(mute.asked) - asked <= 3 + (time.monotonic() - now) / 5
    finally:
        mute.close()


@pytest.mark.parametrize("nonsense", ["no list", [{"jobId": "x"}], [{"jobId": 1, "stageIds": None}]])
def test_nonsense_ends_nothing(seen, driver, nonsense):
    driver.answers["jobs"] = nonsense
    seen.follower.follow("r", lambda: Lead("", driver.url))
    until(lambda: "jobs" in driver.asked)
    driver.does(2)
    assert until(lambda: seen.of("r", "progress"))[0]["tasks_done"] == 2


def test_what_cannot_be_followed_or_has_ended_is_not_asked_for_again(seen, driver):
    asked = []
    seen.follower.follow("never", lambda: asked.append(1))
    driver.does(1)
    seen.follower.follow("r", lambda: Lead("", driver.url))
    until(lambda: seen.of("r", "progress"))
    seen.follower.forget("r")
    count = len(driver.asked)
    seen.follower.follow("other", lambda: Lead("app-20261121195658-0001"))
    until(lambda: seen.of("other", "application_id"))
    time.sleep(1.5)
    assert len(driver.asked) <= count + 2  # what was under way
    assert asked == [1]


def test_its_end_waits_for_no_answer(driver):
    driver.is_silent = True
    one = Seen()
    one.follower.follow("r", lambda: Lead("", driver.url))
    until(lambda: driver.asked)
    began = time.monotonic()
    one.follower.stop()
    assert time.monotonic() - began < 0.5

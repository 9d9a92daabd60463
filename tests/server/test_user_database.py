"""A user database that does not answer holds up the connections of that user alone."""

import os
import select
import threading

import pytest

import trigmon
from tests.daemons import Raw, define
from tests.strangers import NOBODY, as_nobody
from tests.waiting import until
from trigmon.server.arrivals import LOOK_UP_S
from trigmon.wire import codec

# Read by the daemon's interpreter when it starts: look-ups of the user nobody wait until the FIFO has a writer.
SLOW_DATABASE = f"""
import os, pwd
known = pwd.getpwuid
def getpwuid(uid):
    if uid == {NOBODY}:
        with open(os.environ["ASKED"], "a") as asked:
            asked.write("x")
        with open(os.environ["ANSWER"]) as answer:
            answer.read()
    return known(uid)
pwd.getpwuid = getpwuid
"""


class SlowDatabase:
    """A daemon with such a database. ``asked``: how often; ``answer`` ends the wait of all look-ups."""

    def __init__(self, one, directory):
        (directory / "sitecustomize.py").write_text(SLOW_DATABASE)
        self._asked, self._answer = directory / "asked", directory / "answer"
        os.mkfifo(self._answer)
        ours = {"PYTHONPATH": str(directory), "ASKED": str(self._asked), "ANSWER": str(self._answer)}
        self.daemon = one.start(env=one.env | ours)
        with self.daemon.connect() as qm:
            define(qm, "Q")

    @property
    def asked(self):
        return len(self._asked.read_text()) if self._asked.exists() else 0

    def answer(self):
        with self._answer.open("w"):
            pass


@pytest.fixture
def slow(passable, tmp_path):
    return lambda **settings: SlowDatabase(
        passable(start=False, settings={"server.socket_mode": "0666", **settings}), tmp_path
    )


def outcomes_of(work, count):
    """Starts ``count`` threads that each note as the user nobody what ``work()`` returns; and the list of these."""
    outcomes = []
    threads = [threading.Thread(target=lambda: outcomes.append(as_nobody(work)), daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    return outcomes


def puts(daemon):
    def work():
        try:
            with daemon.connect() as qm:
                qm.put("Q", b"x")
                return "put"
        except trigmon.MQError as error:
            return int(error.reason), error.about

    return work


def test_others_are_served_meanwhile_and_the_database_is_asked_once_for_all_connections_of_the_user(slow):
    database = slow()
    outcomes = outcomes_of(puts(database.daemon), 3)
    until(lambda: database.asked)
    with database.daemon.connect() as qm:
        qm.put("Q", b"from root")
        assert qm.open("Q", "input_shared").get().data == b"from root"
    assert outcomes == []
    database.answer()
    until(lambda: len(outcomes) == 3)
    assert outcomes == ["put"] * 3
    assert database.asked == 1


def test_a_client_gets_a_reason_where_the_database_does_not_answer(slow):
    database = slow()
    reason, about = as_nobody(puts(database.daemon))
    assert (reason, f"has not answered for {LOOK_UP_S:.0f} s about user {NOBODY}" in about) == (2059, True), about
    assert database.daemon.events("the user database does not answer")
    database.answer()


def test_connections_that_wait_for_it_count_as_the_users(slow):
    """The user may have one connection, and 32 more are accepted only to hear that there is no room."""
    database = slow(**{"server.max_connections_per_user": "1"})

    def work():
        clients = [Raw(database.daemon, hello=False) for _ in range(36)]
        links = {client.link: client for client in clients}
        refused = until(lambda: len(found := select.select(links, [], [], 0)[0]) >= 3 and found)
        return [links[link].body() for link in refused]

    assert [codec.decode_welcome(body).reason for body in as_nobody(work)] == [2025] * 3
    with database.daemon.connect() as qm:
        qm.put("Q", b"from root")


def test_a_daemon_that_stops_does_not_wait_for_it(slow):
    database = slow()
    outcomes = outcomes_of(puts(database.daemon), 1)
    until(lambda: database.asked)
    assert database.daemon.stop() == 0
    until(lambda: outcomes)
    assert outcomes[0][0] == 2059

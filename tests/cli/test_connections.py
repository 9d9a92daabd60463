"""Who is connected, and the end of a connection by an operator."""

import os

import pytest

import trigmon as client
from tests.cli.conftest import Trigmon, objects
from tests.daemons import define
from tests.waiting import until

Q = "CONN.Q"


@pytest.fixture
def mine(shared_daemon):
    with shared_daemon.connect(application="mine", run_id="") as connection:
        yield connection
        connection.drop()


def rows(trigmon: Trigmon, *more: str):
    return objects(trigmon("connections", "list", *more, "--output", "json"))


def row_of(trigmon: Trigmon):
    (found,) = [row for row in rows(trigmon) if row["application"] == "mine"]
    return found


def test_a_connection_is_shown_with_what_it_has_open(trigmon: Trigmon, qm, mine):
    define(qm, Q)
    row = row_of(trigmon)
    assert (row["pid"], row["open"], row["in_unit"]) == (os.getpid(), [], False)
    assert row["since_time"].endswith("Z")
    queue = mine.open(Q, "input_shared", "output")
    queue.put("m", syncpoint=True)
    row = row_of(trigmon)
    assert (row["open"], row["in_unit"]) == ([Q], True)
    assert [each["application"] for each in rows(trigmon, "--queue", Q)] == ["mine"]
    assert rows(trigmon, "--queue", "NOBODYS") == []
    assert "mine" in trigmon("connections", "list").stdout


def test_one_that_an_operator_ends_is_cut_and_its_unit_backed_out(trigmon: Trigmon, shared_daemon, qm, mine):
    define(qm, f"{Q}2")
    mine.put(f"{Q}2", "lost", syncpoint=True)
    done = trigmon("connections", "end", str(row_of(trigmon)["connection"]))
    assert (done.exit_code, "is ended" in done.stdout) == (0, True)
    with pytest.raises(client.ConnectionBroken):
        mine.commit()
    until(lambda: not [row for row in rows(trigmon) if row["application"] == "mine"])
    assert trigmon("get", f"{Q}2").exit_code == 1
    assert shared_daemon.wait_for_event("an operator ended a connection")["application"] == "mine"


def test_one_that_is_not_there_is_refused(trigmon: Trigmon):
    refused = trigmon("connections", "end", "999999999")
    assert refused.exit_code == 3
    assert "there is no connection 999999999; trigmon connections list shows" in refused.stderr


def test_a_client_that_connects_again_does_so_behind_it(trigmon: Trigmon, shared_daemon, qm):
    define(qm, f"{Q}3")
    with shared_daemon.connect(application="mine", reconnect_s=60) as again:
        queue = again.open(f"{Q}3", "output", "inquire")
        trigmon("connections", "end", str(row_of(trigmon)["connection"]))
        assert queue.inquire("current_q_depth") == {"current_q_depth": 0}

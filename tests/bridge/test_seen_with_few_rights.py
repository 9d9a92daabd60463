"""What a user with few rights there sees: MQINQ and PCF stand in for one another, and what neither shows is marked."""

# ruff: noqa: F401, F811 - fixtures are imported
from __future__ import annotations

import pytest

from tests.bridge.conftest import NEEDS_IBMMQ
from tests.bridge.queues_elsewhere import INITIATION, QUEUE, THERE, for_other_users, library_directory
from tests.strangers import as_user
from trigmon.bridge.connection import RemoteConnection
from trigmon.bridge.remote_facts import look_at_queue
from trigmon.bridge.remote_verdict import explain_seen
from trigmon.mq.calls import SetAuthority
from trigmon.mq.explanation import NOT_SEEN
from trigmon.setting_sections import BridgeSettings

pytestmark = NEEDS_IBMMQ
ALICE = 5001


@pytest.fixture
def there(passable, library_directory, monkeypatch):
    """Yields a queue that fires, at a queue manager that other users of this machine reach."""
    with for_other_users(passable, library_directory, monkeypatch) as one:
        yield one


def seen_by_alice(there, *records):
    """Returns what was not seen with the reasons, and the answer of each condition, for a user with these rights."""
    for name, rights in records:
        there.qm.call(SetAuthority(name=f"{name} user {ALICE}", add=list(rights)))

    def work():
        connection = RemoteConnection("REAL", BridgeSettings(queue_manager=THERE, initiation_queues=[INITIATION]))
        verdict = explain_seen(look_at_queue(connection, QUEUE, timeout_s=2.0), -1, 1)
        connection.drop()
        return verdict.values["unseen"], {each.number: each.holds for each in verdict.conditions}

    return as_user(ALICE, work)


def inquired(*names):
    """Returns the rights to inquire objects, and the queue manager."""
    return [(name, ["inquire"]) for name in ("qmgr SELF", *names)]


def not_seen(holds):
    return [number for number, answer in holds.items() if answer == NOT_SEEN]


def test_without_pcf_mqinq_shows_what_counts(there):
    unseen, holds = seen_by_alice(there, *inquired("queue PAY", "queue PAY.INIT", "process PAY.LOAD"))
    assert set(unseen) == {"uncommitted", "handles"}
    assert "2035" in unseen["handles"]
    assert not_seen(holds) == []


def test_a_process_and_an_initiation_queue_that_may_not_be_inquired_are_marked(there):
    unseen, holds = seen_by_alice(there, *inquired("queue PAY"))
    assert not_seen(holds) == ["6", "7", "8"]
    assert "MQOPEN of PAY.LOAD to inquire: 2035" in unseen["process"]


def test_without_mqinq_of_the_queue_pcf_shows_it(there):
    commands = [("queue SYSTEM.ADMIN.COMMAND.QUEUE", ["put"]), ("queue SYSTEM.DEFAULT.MODEL.QUEUE", ["get", "dsp"])]
    shown = [("queue PAY", ["dsp"]), ("queue PAY.INIT", ["dsp"]), ("process PAY.LOAD", ["dsp"])]
    unseen, holds = seen_by_alice(there, *commands, *shown, ("qmgr SELF", ["inquire"]))
    assert "attributes" not in unseen
    assert not_seen(holds) == []


def test_without_any_right_nothing_is_taken_for_granted(there):
    unseen, holds = seen_by_alice(there, ("queue OTHER", ["get"]))
    assert {"attributes", "depth", "readers", "interval"} <= set(unseen)
    assert not_seen(holds) == [str(number) for number in range(2, 15)]

"""The load that the proofs share reaches what it is there for: a proof of nothing would find nothing."""

from collections import Counter

import pytest

from tests.proof.clients import ASIDE, LOADED, REPORTS
from tests.proof.harness import Harness
from tests.proof.history import BACKED_OUT, COMMITTED
from tests.proof.steps import STEPS


@pytest.fixture(scope="module")
def harness(tmp_path_factory):
    played = Harness(tmp_path_factory.mktemp("load"), 1)
    played.start()
    played.play(600, kills=3)
    yield played
    played.end()


def test_every_step_comes_to_its_end(harness):
    played = sum((player.client.played for player in harness.players), Counter())
    # Its link is cut, so it never comes to the end of that one.
    assert {step.name for step in STEPS} - {"die"} == set(played)


def test_messages_of_every_queue_are_seen(harness):
    seen = {event["queue"] for event in harness.events if event["event"] == "seen"}
    assert seen >= set(LOADED) - {ASIDE}
    for name in (ASIDE, REPORTS):
        (row,) = harness.shown(name)
        assert row["current_q_depth"] > 0


def test_works_end_in_every_way_and_messages_are_carried_over(harness):
    ended = Counter(event["outcome"] for event in harness.events if event["event"] == "ended")
    assert ended[COMMITTED] > 100
    assert ended[BACKED_OUT] > 50
    assert any(event["event"] == "carried" for event in harness.events)
    assert any(event.get("was_cut") for event in harness.events)
    assert {event["how"] for event in harness.events if event["event"] == "crash"} == {"kill"}

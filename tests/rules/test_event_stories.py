"""Random stories go alike with events and without, whatever the event queue is like: same replies, same ledger."""

import json
import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.rules.launching_ledger import Ledger
from tests.rules.test_launching_stories import STEPS, Story
from trigmon.mq.calls import Alter, Delete, Get, Open, Put, Runs
from trigmon.mq.enums import OpenOption
from trigmon.mq.event_kinds import EVENT_QUEUE
from trigmon.mq.replies import Refused
from trigmon.mq.run import Ending, read_run
from trigmon.rules.model.events import EventMessageDropped

QUEUE = {
    "max_q_depth": 4,
    "q_depth_high_limit": 50,
    "q_depth_low_limit": 25,
    "q_depth_high_event": "enabled",
    "q_service_interval": 500,
    "q_service_interval_event": "high",
}
ON = {"trigmon_event": "enabled", "performance_event": "enabled"}


def nothing(ledger: Ledger) -> None:
    """As it is from the first start."""


def off(ledger: Ledger) -> None:
    alter(ledger, "QMGR", "", **dict.fromkeys(ON, "disabled"))


def full(ledger: Ledger) -> None:
    alter(ledger, "QLOCAL", EVENT_QUEUE, max_q_depth=1)


def inhibited(ledger: Ledger) -> None:
    alter(ledger, "QLOCAL", EVENT_QUEUE, inhibit_put="inhibited")


def gone(ledger: Ledger) -> None:
    ledger.did(Delete(object_type="QLOCAL", name=EVENT_QUEUE), "operator")


def alter(ledger: Ledger, kind: str, name: str, **attributes: object) -> None:
    ledger.did(Alter(object_type=kind, name=name, attributes=attributes), "operator")


class Told(Story):
    """A story under one kind of event queue."""

    def __init__(self, kind: str, directory: Path, how) -> None:
        super().__init__(kind, directory)
        self.dropped = 0
        tell = self.ledger.telling.tell

        def noted(event):
            self.dropped += isinstance(event, EventMessageDropped)
            tell(event)

        self.ledger.telling.tell = noted
        for name in ("Q", "Q2"):
            alter(self.ledger, "QLOCAL", name, **QUEUE)
        alter(self.ledger, "QMGR", "", **ON)
        how(self.ledger)

    def play(self, step: tuple) -> object:
        what, *said = step
        if what != "put":
            return self.known(super().play(step))
        q_name, count = said
        replies = [self.ledger.do(Put(q_name=q_name, data=b"x"), "loader") for _ in range(count)]
        return [reply.reason if isinstance(reply, Refused) else 0 for reply in replies]

    def known(self, said: object) -> str:
        """What was said, without the numbers that messages use up: ids of runs by their order, ids of messages gone."""
        ids = sorted(self.ledger.states())
        text = re.sub(r"\b[0-9a-f]{48}\b", "MSGID", repr(said))
        return re.sub(
            r"\b[0-9a-f]{16}\b", lambda found: f"run {ids.index(found[0])}" if found[0] in ids else "run", text
        )

    def told(self) -> list[dict]:
        """What was told, which is taken off the queue."""
        reply = self.ledger.do(Open(object_name=EVENT_QUEUE, options=int(OpenOption.INPUT_SHARED)), "reader")
        found = []
        while not isinstance(reply, Refused):
            got = self.ledger.do(Get(handle=reply.handle), "reader")
            if isinstance(got, Refused):
                break
            found.append(json.loads(got.data))
        return found


@settings(max_examples=15, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(steps=st.lists(STEPS, min_size=10, max_size=60))
def test_a_story_goes_alike_with_events_and_without(steps):
    tell(steps)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@settings(max_examples=400, deadline=None)
@given(steps=st.lists(STEPS, min_size=10, max_size=80))
def test_many_stories_go_alike_with_events_and_without(steps):
    tell(steps)


def tell(steps: list[tuple]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        stories = [Told("memory", Path(directory), how) for how in (off, nothing, full, inhibited, gone)]
        try:
            for step in steps:
                first, *others = [story.play(step) for story in stories]
                assert others == [first] * len(others), step
            seen = [story.known(story.seen()) for story in stories]
            assert seen[1:] == seen[:1] * (len(seen) - 1)
            of_no_queue, of_all, of_full, of_inhibited, _ = [story.told() for story in stories]  # a start makes it anew
            assert of_no_queue == []
            assert stories[1].dropped == 0
            runs = stories[1].ledger.did(Runs(where={})).rows
            ended = [run for run in map(read_run, runs) if run.is_ended]
            failed = {run.run_id for run in ended if run.ending is Ending.FAILED}
            assert {event["run_id"] for event in of_all if event["event"] == "run_failed"} >= failed
            assert (len(of_full) <= 1, of_inhibited) == (True, [])
        finally:
            for story in stories:
                story.ledger.end()

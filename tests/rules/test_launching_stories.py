"""Random stories of triggers, programs, ends, operators and restarts: all stores tell the same."""

import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rules.launching_ledger import INITQ, SYNCPOINT, Ledger
from tests.worlds import STORES
from trigmon.mq.calls import (
    Alter,
    Backout,
    Call,
    CancelRun,
    Caps,
    ChangeRun,
    Close,
    Commit,
    Controls,
    Get,
    Pause,
    Pauses,
    Resume,
    Runs,
    StartRuns,
)
from trigmon.mq.replies import Refused
from trigmon.mq.run import OPEN, WITH_PROGRAM, read_run

CAPS = Caps(instances=3, runs=5)
PROGRAMS = ("open", "get", "end unit", "close", "leave")
ONE = st.integers(0, 30)
STEPS = st.one_of(
    st.tuples(st.just("put"), st.sampled_from(["Q", "Q2"]), st.integers(1, 3)),
    st.tuples(st.just("come"), st.sampled_from(["Q", "Q2"]), st.sampled_from(["m:1", "m:2"])),
    st.tuples(st.just("start"), st.sampled_from(["m:1", "m:2"]), st.integers(1, 4)),
    st.tuples(st.just("change"), ONE, st.sampled_from(["started", "held", "due", "failed", "unknown"])),
    st.tuples(st.just("exit"), ONE, st.sampled_from([0, 1])),
    st.tuples(st.just("open"), ONE),
    st.tuples(st.just("get"), ONE, st.sampled_from([0, SYNCPOINT])),
    st.tuples(st.just("end unit"), ONE, st.sampled_from([Commit, Backout])),
    st.tuples(st.just("close"), ONE),
    st.tuples(st.just("leave"), ONE, st.sampled_from(["disconnect", "lose"])),
    st.tuples(st.just("cancel"), ONE),
    st.tuples(st.just("pause"), st.sampled_from(["Q", "Q2"])),
    st.tuples(st.just("resume"), st.sampled_from(["Q", "Q2"])),
    st.tuples(st.just("process"), st.sampled_from([{"retry": 0}, {"retry": 2}, {"breaker": 0}, {"breaker": 2}])),
    st.tuples(st.just("process"), st.sampled_from([{"instances": 1}, {"instances": 0}, {"coalesce": "yes"}])),
    st.tuples(st.just("pass"), st.sampled_from([100, 1000, 60_000])),
    st.tuples(st.just("again"), st.sampled_from(["restart", "crash"])),
)


class Story:
    """One store's: what happened, and what was answered."""

    def __init__(self, kind: str, directory: Path) -> None:
        self.kind = kind
        self.ledger = Ledger(kind, directory)
        self.handles: dict[str, int] = {}
        self.units: Counter[str] = Counter()

    def run_id(self, number: int) -> str:
        ids = sorted(self.ledger.states())
        return ids[number % len(ids)] if ids else "0"

    def program(self, number: int) -> str:
        return f"of {self.run_id(number)}"

    def play(self, step: tuple) -> object:
        """The answer, as far as it is not the store's own numbers."""
        what, *said = step
        call = self.call(what, said)
        if call is not None:
            return self.ledger.do(call, "monitor" if what in ("start", "change", "exit") else "operator")
        match what:
            case "put":
                return self.ledger.put(*said)
            case "come":
                return self.ledger.come(CAPS, q_name=said[0], monitor=said[1])
            case "pass":
                return self.ledger.clock.advance(said[0])
            case "again":
                self.ledger.qm.housekeeping.idle()  # what may wait is written then, and not before
                getattr(self.ledger, said[0])()
                self.handles.clear()
                self.units.clear()
        return self.act(what, said) if what in PROGRAMS else None

    def call(self, what: str, said: list) -> Call | None:  # noqa: PLR0911 - a table
        """What a monitor or an operator asks, if it is theirs."""
        match what:
            case "start":
                return StartRuns(initiation_q=INITQ, monitor=said[0], caps=CAPS, limit=said[1])
            case "change":
                return ChangeRun(run_id=self.run_id(said[0]), fields={"state": said[1]})
            case "exit":
                ended = {"state": "exited", "exit_status": said[1], "why": f"ended with status {said[1]}"}
                return ChangeRun(run_id=self.run_id(said[0]), fields=ended)
            case "cancel":
                return CancelRun(run_id=self.run_id(said[0]))
            case "pause" | "resume":
                return (Pause if what == "pause" else Resume)(what="queue", name=said[0])
            case "process":
                return Alter(object_type="PROCESS", name="P", attributes=said[0])
        return None

    def act(self, what: str, said: list) -> object:
        """What a program does, if it is there."""
        ledger, name = self.ledger, self.program(said[0])
        if what == "open":
            if name not in self.handles and name != "of 0":
                q_name = ledger.run(self.run_id(said[0]))["q_name"]
                self.handles[name] = ledger.program(name.removeprefix("of "), q_name)
            return None
        handle = self.handles.get(name)
        if handle is None:
            return None
        unit = self.units[name] + 1
        if what == "get":
            reply = ledger.do(Get(handle=handle, options=said[1], unit=unit if said[1] else 0), name)
            return reply.reason if isinstance(reply, Refused) else "got"
        if what == "end unit":
            self.units[name] = unit
            return type(ledger.do(said[1](unit=unit), name))
        del self.handles[name]
        if what == "close":
            ledger.do(Close(handle=handle), name)
            self.units.pop(name, None)
            return ledger.lose(name)
        self.units.pop(name, None)
        return getattr(ledger, said[1])(name)

    def seen(self) -> object:
        """All of the ledger, as anybody may read it."""
        ledger = self.ledger
        return (
            [ledger.did(Runs(where={})).rows, ledger.did(Pauses()).rows],
            ledger.did(Controls(monitor="m:1"), "monitor").values["cancel"],
            [ledger.queue_depth("Q"), ledger.queue_depth("Q2")],
        )

    def check(self) -> None:
        """What stands is what the records say, and nobody had more started than may run."""
        rows = self.ledger.did(Runs(where={})).rows
        standing = self.ledger.store.standing
        assert standing.held == Counter(run.line for run in map(read_run, rows) if run.is_held)
        running = {row["run_id"] for row in rows if row["state"] in WITH_PROGRAM}
        assert {each.run_id for each in standing.running.values() if not each.is_over} == running
        for row in rows:
            if row["state"] in OPEN:
                assert not row.get("end_ms")
        for serving in standing.running.values():
            assert 0 <= serving.committed + serving.backed_out <= serving.taken
            assert serving.opens >= 0


TOLD = given(steps=st.lists(STEPS, min_size=10, max_size=80))


@settings(max_examples=20)
@TOLD
def test_stories_go_alike_on_all_stores_and_the_counts_hold(steps):
    tell(steps)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@settings(max_examples=400)
@TOLD
def test_many_stories_go_alike_on_all_stores_and_the_counts_hold(steps):
    tell(steps)


def tell(steps: list[tuple]) -> None:
    """One story, on every store at once."""
    with tempfile.TemporaryDirectory() as directory:
        stories = [Story(kind, Path(directory) / kind) for kind in STORES]
        try:
            for story in stories:
                (Path(directory) / story.kind).mkdir(exist_ok=True)
            for step in steps:
                first, *others = [story.play(step) for story in stories]
                assert others == [first] * len(others), step
                for story in stories:
                    story.check()
            assert [story.seen() for story in stories[1:]] == [stories[0].seen()] * (len(stories) - 1)
        finally:
            for story in stories:
                story.ledger.end()

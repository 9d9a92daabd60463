"""A queue manager after everything: what became of units that were cut, what lies on its queues, what is defined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.proof.clients import COUNTED, OUTCOMES, QUEUES
from tests.proof.history import BACKED_OUT, UNKNOWN, Event, History, Left
from trigmon.mq.calls import (
    Call,
    Display,
    GetMany,
    Listing,
    Open,
    Opened,
    Outcome,
    OutcomeWas,
    Reply,
    Runs,
    WasGot,
    WereGot,
)
from trigmon.mq.enums import OpenOption
from trigmon.qmgr.manager import QueueManager
from trigmon.qmgr.sessions import Identity

MOST = 4096
OF_CLIENTS = ("ALTER.*", "MADE.*")
LAST = Identity(client_id="last", application="last", administrator=True)


def settled(events: list[Event], ask: Any) -> list[Event]:
    """The history with an end to every work that has none: by asking, as its client would, or as its client knows.

    ``ask(client_id, unit)`` is the outcome of a unit.
    """
    ends = {event["work"]: event for event in events if event["event"] == "ends"}
    said = []
    for name, work in History(events).works.items():
        if work.outcome:
            continue
        end = ends.get(name)
        if end is None:
            outcome = BACKED_OUT
        elif end["alone"]:
            outcome = UNKNOWN
        else:
            outcome = ask(end["client_id"], end["unit"])
        said.append({"event": "ended", "who": work.who, "at": -1, "ms": events[-1]["ms"], "work": name})
        said[-1]["outcome"] = outcome
    return events + said


def as_left(q_name: str, message: WasGot) -> tuple[str, str, int, int]:
    """A message as :class:`tests.proof.history.Left` has it."""
    descriptor = message.descriptor
    return q_name, message.data.decode(), descriptor.priority, descriptor.backout_count


class Aftermath:
    """The last look at a queue manager that serves nobody else."""

    def __init__(self, manager: QueueManager) -> None:
        self._manager = manager
        self._session = manager.connect(LAST)

    def judge_units(self, events: list[Event]) -> list[Event]:
        """See :func:`settled`."""
        return settled(events, self._outcome)

    def left(self, queues: Sequence[str] = (*QUEUES, COUNTED)) -> Left:
        """Takes everything off the queues, and reads what clients wrote."""
        opened = self._do(*(Open(object_name=name, options=int(OpenOption.INPUT_EXCLUSIVE)) for name in queues))
        messages = []
        for name, handle in zip(queues, opened, strict=True):
            # A crash may have come before the queue was defined.
            while isinstance(handle, Opened) and isinstance(
                reply := self._do(GetMany(handle=handle.handle, count=MOST))[0], WereGot
            ):
                messages += [as_left(name, message) for message in reply.messages]
        return Left(messages, self._values(), self._manager.clock.now())

    def _values(self) -> dict[str, object]:
        """What clients wrote: descriptions of queues, and states of runs."""
        looks = [Display(object_type="QLOCAL", name=name, limit=MOST) for name in OF_CLIENTS]
        *shown, runs = (reply.rows for reply in self._do(*looks, Runs(limit=MOST)) if isinstance(reply, Listing))
        values = {str(row["name"]): row["description"] or None for rows in shown for row in rows}
        return values | {str(row["run_id"]): row["state"] for row in runs}

    def _outcome(self, client_id: str, unit: int) -> str:
        (reply,) = self._do(Outcome(client_id=client_id, unit=unit))
        assert isinstance(reply, OutcomeWas), reply
        return OUTCOMES.get(reply.outcome, str(reply.outcome))

    def _do(self, *calls: Call) -> list[Reply]:
        answers = self._manager.turn([(self._session, number, call) for number, call in enumerate(calls, 1)])
        return [answer.reply for answer in answers if answer.session is self._session]

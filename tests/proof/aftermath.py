"""A queue manager after everything: what became of units that were cut, what lies on its queues, what is defined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.proof.clients import LOADED, OUTCOMES, REPORTS
from tests.proof.history import BACKED_OUT, UNKNOWN, Event, Left
from trigmon.mq.calls import Call, Display, GetMany, Open, Outcome, Release, Reservations, Runs
from trigmon.mq.enums import OpenOption
from trigmon.mq.replies import Listing, Opened, OutcomeWas, Reply, WasGot, WereGot
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
    open_works = {event["work"]: event["who"] for event in events if event.get("work")}
    for event in events:
        if event["event"] == "ended":
            open_works.pop(event["work"])
    said = []
    for work, who in open_works.items():
        end = ends.get(work)
        if end is None:
            outcome = BACKED_OUT
        elif end["alone"]:
            outcome = UNKNOWN
        else:
            outcome = ask(end["client_id"], end["unit"])
        ended = {"event": "ended", "who": who, "at": -1, "ms": events[-1]["ms"], "work": work, "outcome": outcome}
        said.append(ended)
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

    def left(self, queues: Sequence[str] = LOADED) -> Left:
        """Takes everything off the queues, and reads what clients wrote."""
        names, alone = (*queues, REPORTS), int(OpenOption.INPUT_EXCLUSIVE)
        opened = self._do(*(Open(object_name=name, options=alone) for name in names))
        (reserved,) = self._do(Reservations())
        assert isinstance(reserved, Listing)
        self._do(*(Release(reservation=row["reservation"]) for row in reserved.rows))
        while self._manager.housekeeping.is_scanning:
            self._manager.housekeeping.scan()
        messages: list[tuple[str, str, int, int]] = []
        for name, handle in zip(names, opened, strict=True):
            # A crash may have come before the queue was defined.
            while isinstance(handle, Opened) and isinstance(
                reply := self._do(GetMany(handle=handle.handle, count=MOST))[0], WereGot
            ):
                messages += [as_left(name, message) for message in reply.messages]
        reports = [body for name, body, _, _ in messages if name == REPORTS]
        lying = [message for message in messages if message[0] != REPORTS]
        return Left(lying, self._values(), self._manager.clock.now(), reports)

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

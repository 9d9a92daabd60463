"""A client of a real daemon that is killed again and again: ``python -m tests.proof.kill_client ADDRESS LEDGER WHO``.

It speaks through the client library, keeps its ledger in a file, and ends when its standard input does.
"""

from __future__ import annotations

import random
import select
import sys
import time
from pathlib import Path
from typing import Any

import trigmon
from tests.proof.clients import CUT, LINK, Client, Gone, Pause
from tests.proof.history import Ledger
from tests.proof.steps import STEPS
from trigmon.client.connection import Connection
from trigmon.mq.calls import Call, Disconnect
from trigmon.mq.replies import Refused, Reply

GONE = (trigmon.ConnectionBroken, trigmon.QMgrNotAvailable, trigmon.QMgrStopping)
RECONNECT_S = 30.0


class OverSocket:
    """Plays a client on connections to a daemon."""

    def __init__(self, address: str, who: str, ledger: Ledger) -> None:
        self._address = address
        self._who = who
        self._ledger = ledger
        self._qm: Connection | None = None

    def note(self, event: str, **what: Any) -> None:
        """Writes an event with its moment, on the machine's monotonic clock."""
        now = time.monotonic_ns()
        self._ledger.append({"event": event, "who": self._who, "at": now, "ms": now // 1_000_000, **what})

    def play(self, client: Client) -> None:
        """Its whole life."""
        life = client.life()
        want = next(life)
        while True:
            try:
                try:
                    answer = self._do(want)
                except GONE:
                    want = life.throw(Gone())
                else:
                    want = life.throw(answer) if isinstance(answer, Gone) else life.send(answer)
            except StopIteration:
                return

    def _do(self, want: Any) -> Any:
        if want == LINK:
            return self._link()
        if isinstance(want, Pause):
            return time.sleep(want.ms / 1000)
        if self._qm is None:
            return Gone()
        if want == CUT:
            self._qm.drop()
            self._qm = None
            return Gone()
        if isinstance(want, list):
            return [*self._qm.pipeline(want[:-1]), self._call(want[-1])]
        return self._call(want)

    def _call(self, call: Call) -> Reply:
        assert self._qm is not None
        try:
            reply = self._qm.call(call)
        except GONE:
            self._qm.drop()
            self._qm = None
            raise
        except trigmon.MQError as error:
            return Refused(reason=int(error.reason), about=error.about)
        if isinstance(call, Disconnect):
            self._qm.drop()
            self._qm = None
        return reply

    def _link(self) -> str:
        deadline = time.monotonic() + RECONNECT_S
        while True:
            try:
                self._qm = trigmon.connect(self._address, application=self._who)
            except GONE:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)
            else:
                return self._qm.client_id


def main(address: str, ledger: str, who: str) -> None:
    """Works until told to end."""
    played = OverSocket(address, who, Ledger(Path(ledger)))
    client = Client(who, random.Random(who), played.note, STEPS, lambda: not select.select([sys.stdin], [], [], 0)[0])
    played.play(client)


if __name__ == "__main__":
    main(*sys.argv[1:])

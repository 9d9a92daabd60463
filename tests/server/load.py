"""Clients that load a queue manager while it is killed, and keep a ledger: ``python -m tests.server.load ROLE ...``.

They end when their standard input does.
"""

from __future__ import annotations

import random
import select
import sys
import time
from itertools import count
from pathlib import Path

import trigmon
from tests.server.history import BACKED_OUT, COMMITTED, UNKNOWN, Ledger

GONE = (trigmon.ConnectionBroken, trigmon.QMgrNotAvailable, trigmon.QMgrStopping)
QUEUE = "LOAD"
RECONNECT_S = 30.0


class Client:
    """A connection that comes back after a kill, and asks what became of the unit that was cut."""

    def __init__(self, role, address, ledger, who):
        self.role, self.address, self.who = role, address, who
        self.ledger = Ledger(Path(ledger), who)
        self.random = random.Random(who)
        self.units = count()
        self.bodies = count()
        self.link()

    def link(self):
        """Connects, however long the queue manager takes to come back, and opens the queue."""
        deadline = time.monotonic() + RECONNECT_S
        while True:
            try:
                self.qm = trigmon.connect(self.address, application=self.who)
                self.q = self.qm.open(QUEUE, "output" if self.role == "put" else "input_shared")
            except GONE:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)
            else:
                return

    def fate(self, unit, client_id):
        """Connects again and asks what became of the unit."""
        while True:
            self.link()
            try:
                outcome = self.qm.outcome(unit, client_id)
            except GONE:
                continue
            return outcome.name.lower().replace("_", " ")

    def run(self):
        """Works until told to end."""
        step = self.put_one_or_some if self.role == "put" else self.get_some
        while not select.select([sys.stdin], [], [], 0)[0]:
            step()
        self.qm.disconnect()

    def put_one_or_some(self):
        """A single put, or up to five in a unit of work."""
        name = f"{self.who}/{next(self.units)}"
        bodies = [f"{self.who}#{next(self.bodies)}" for _ in range(self.random.choice([1, 1, 3, 5]))]
        in_unit = len(bodies) > 1
        self.ledger.note("put", unit=name, bodies=bodies)
        unit, client_id = self.qm.unit, self.qm.client_id
        asked = False
        try:
            for body in bodies:
                self.q.put(body.encode(), syncpoint=in_unit)
            if in_unit:
                self.qm.commit()
            outcome = COMMITTED
        except GONE:
            asked = in_unit
            outcome = self.fate(unit, client_id)
            if not in_unit:
                outcome = UNKNOWN
        self.ledger.note("put-end", unit=name, outcome=outcome, asked=asked)

    def get_some(self):
        """Up to four gets in a unit of work, of which one in ten is backed out."""
        name = f"{self.who}/{next(self.units)}"
        unit, client_id = self.qm.unit, self.qm.client_id
        bodies = []
        try:
            for _ in range(self.random.randint(1, 4)):
                message = self.q.get(syncpoint=True, wait_interval_ms=50)
                bodies.append(message.data.decode())
                self.ledger.note("seen", body=bodies[-1], count=message.backout_count)
        except trigmon.NoMsgAvailable:
            pass
        except GONE:
            # Nothing asked for a commit, so whatever was taken is back.
            self.link()
            return
        if not bodies:
            return
        self.ledger.note("get", unit=name, bodies=bodies)
        asked = False
        try:
            if self.random.random() < 0.1:
                outcome = BACKED_OUT
                self.qm.backout()
            else:
                outcome = COMMITTED
                self.qm.commit()
        except GONE:
            asked = True
            outcome = self.fate(unit, client_id)
        self.ledger.note("get-end", unit=name, outcome=outcome, asked=asked)


if __name__ == "__main__":
    Client(*sys.argv[1:]).run()

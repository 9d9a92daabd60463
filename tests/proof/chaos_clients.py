"""Clients of a group's members under load, each in a thread: units of work with a shared queue and one's own."""

from __future__ import annotations

import itertools
import random
import threading
import time

import trigmon
from tests.daemons import Daemon
from tests.proof.chaos_rules import BACKED_OUT, COMMITTED, Work
from trigmon.client.connection import Connection
from trigmon.client.queue import Queue
from trigmon.mq.enums import UnitOutcome

SHARED, OWN = "CHAOS.SHARED", "CHAOS.OWN"
LINK_S = 10.0
AGAIN_S = 0.05


class Client(threading.Thread):
    """Works through one member until :meth:`end`, and keeps its ``works``; ``problem`` is what it could not bear."""

    def __init__(self, who: str, member: Daemon, seed: int) -> None:
        super().__init__(name=who, daemon=True)
        self.works: list[Work] = []
        self.problem: BaseException | None = None
        self._who = who
        self._member = member
        self._choose = random.Random(f"{seed} {who}")
        self._numbers = itertools.count(1)
        self._is_over = threading.Event()

    def end(self) -> None:
        """It ends with its present unit of work."""
        self._is_over.set()

    def run(self) -> None:
        """Its whole life, over many connections."""
        try:
            while not self._is_over.is_set():
                try:
                    self._work(trigmon.connect(self._member.address, application=self._who, timeout_s=LINK_S))
                except trigmon.MQError:
                    time.sleep(AGAIN_S)
        except BaseException as error:
            self.problem = error

    def _work(self, qm: Connection) -> None:
        """Units of work over one connection, until it is lost; then what became of the last one is asked for."""
        linked_s = time.time()
        try:
            with qm.open(SHARED, "input_shared", "output") as shared, qm.open(OWN, "input_shared", "output") as own:
                while not self._is_over.is_set():
                    work = Work(self._who, self._member.name, linked_s, began_s=time.time())
                    self.works.append(work)
                    unit = qm.unit
                    try:
                        self._unit(qm, work, shared, own)
                    except trigmon.MQError:
                        qm.drop()
                        self._settle(work, unit, qm.client_id)
                        raise
        finally:
            qm.drop()

    def _unit(self, qm: Connection, work: Work, *queues: Queue) -> None:
        for q in queues:
            for _ in range(self._choose.randrange(3)):
                body = f"{self._who}#{next(self._numbers)}"
                work.puts.append((q.name, body))
                q.put(body, persistence="persistent", syncpoint=True)
            for _ in range(self._choose.randrange(3)):
                try:
                    message = q.get(syncpoint=True, wait_interval_ms=self._choose.choice((0, 0, 50)))
                except trigmon.NoMsgAvailable:
                    break
                work.gets.append((q.name, message.text, message.backout_count))
        time.sleep(self._choose.choice((0, 0, 0.01, 0.1)))
        if self._choose.random() < 0.15:
            qm.backout()
            work.outcome = BACKED_OUT
        else:
            work.asked_s = time.time()
            qm.commit()
            work.outcome = COMMITTED

    def _settle(self, work: Work, unit: int, client_id: str) -> None:
        """What was not asked to end was backed out; what was, the queue manager knows when it is back."""
        work.was_cut, work.cut_s = True, time.time()
        if not work.asked_s:
            work.outcome = BACKED_OUT
            return
        while True:
            try:
                with trigmon.connect(self._member.address, application=self._who, timeout_s=LINK_S) as qm:
                    said = qm.outcome(unit, client_id)
            except trigmon.MQError:
                said = UnitOutcome.OPEN
            if said is not UnitOutcome.OPEN:
                work.outcome = COMMITTED if said is UnitOutcome.COMMITTED else BACKED_OUT
                return
            time.sleep(AGAIN_S)


class Monitor(threading.Thread):
    """Has a member's initiation queue open whenever that serves; ``heard`` are the moments of trigger messages."""

    def __init__(self, member: Daemon, initiation_q: str) -> None:
        super().__init__(name=f"monitor of {member.name}", daemon=True)
        self.heard: list[float] = []
        self._member = member
        self._initiation_q = initiation_q
        self._is_over = threading.Event()

    def end(self) -> None:
        """It ends within a second."""
        self._is_over.set()

    def run(self) -> None:
        """Its whole life, over many connections."""
        while not self._is_over.is_set():
            try:
                qm = trigmon.connect(self._member.address, application="monitor", timeout_s=LINK_S)
            except trigmon.MQError:
                time.sleep(AGAIN_S)
                continue
            try:
                with qm.open(self._initiation_q, "input_shared") as q:
                    self._listen(q)
            except trigmon.MQError:
                time.sleep(AGAIN_S)
            finally:
                qm.drop()

    def _listen(self, q: Queue) -> None:
        while not self._is_over.is_set():
            try:
                q.get(wait_interval_ms=500)
            except trigmon.NoMsgAvailable:
                continue
            self.heard.append(time.time())

"""Proof: queue managers are killed while a schedule has a moment each second and files arrive.

Each moment is started once, and each file becomes one message.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from typing import Any

import pytest

import trigmon
from tests.daemons import Daemon, define
from tests.ledger import have_all_ended, recorded_runs
from tests.members import members, sees, share
from tests.waiting import until
from tests.watches.arriving_files import ArrivingFiles
from tests.watches.watched_queue import WatchedQueue
from trigmon.mq.calls import Display, Pause
from trigmon.mq.paging import all_rows

INITQ = "SYSTEM.DEFAULT.INITIATION.QUEUE"
SCHEDULES = ("OF.QUEUE", "OF.PROCESS")
EACH_SECOND = {"every_s": 1, "missed": "all"}
COUNTS = [4, pytest.param(200, marks=pytest.mark.slow)]


def schedule_of(qm: Any, name: str) -> dict[str, Any]:
    return next(row for row in qm.call(Display(object_type="SCHEDULE", name=name)).rows if row["name"] == name)


def assert_each_second_once(moments: list[int], first_ms: int, last_ms: int) -> None:
    doubled = {moment: count for moment, count in Counter(moments).items() if count > 1}
    left_out = {*range(first_ms, last_ms + 1, 1000)} - {*moments}
    assert (doubled, sorted(left_out)) == ({}, [])


@pytest.mark.parametrize("kills", COUNTS)
def test_each_moment_has_one_run_and_each_file_one_message_whenever_processes_are_killed(daemon, tmp_path, kills):
    chance = random.Random(kills)
    one: Daemon = daemon(with_monitor=True, settings={"monitor.instances": 4})
    watched = WatchedQueue(one, tmp_path / "in")
    with one.connect() as qm:
        define(qm, "P", "PROCESS", appl_id="true", tmc_argument="no", retry=0)
        define(qm, "TIMED", process_name="P", initiation_q_name=INITQ, trigger_type="every")
        define(qm, "OF.QUEUE", "SCHEDULE", q_name="TIMED", **EACH_SECOND)
        define(qm, "OF.PROCESS", "SCHEDULE", process_name="P", **EACH_SECOND)
        until(lambda: all(schedule_of(qm, name)["last_moment_ms"] for name in SCHEDULES))
    with ArrivingFiles(watched, random.Random(kills)) as arriving:
        for number in range(kills):
            time.sleep(chance.uniform(0.1, 2.0))
            if number % 3 == 0:
                watched.kill_process()
                time.sleep(chance.uniform(0.0, 0.3))
            one.kill()
            one.start()
    assert_all_moments_have_one_run(one)
    arriving.assert_each_once()
    print(f"{kills} kills, {len(arriving.names)} files")


def assert_all_moments_have_one_run(one: Daemon) -> None:
    with one.connect() as qm:
        began_ms = time.time() * 1000
        until(lambda: all(schedule_of(qm, name)["last_moment_ms"] > began_ms for name in SCHEDULES))
        for name in SCHEDULES:
            qm.call(Pause(what="schedule", name=name))
            last_ms = schedule_of(qm, name)["last_start_ms"]
            until(lambda: have_all_ended(qm))
            until(lambda: qm.call(Display(object_type="QLOCAL", name=INITQ)).rows[0]["current_q_depth"] == 0)
            runs = recorded_runs(qm, schedule=name)
            moments = [run["moment_ms"] for run in runs if run["attempt"] == 1]
            assert_each_second_once(moments, min(moments), last_ms)
            assert {run["occasion"] for run in runs} == {"S"}


class Listeners:
    """A monitor of each member: it notes each trigger message that it takes, and comes back when its member does."""

    def __init__(self, some: list[Daemon], q_name: str) -> None:
        self.moments: dict[bytes, int] = {}
        self._q_name = q_name
        self._is_over = threading.Event()
        self._threads = [threading.Thread(target=self._listen, args=(one,), daemon=True) for one in some]
        for thread in self._threads:
            thread.start()

    def _listen(self, one: Daemon) -> None:
        while not self._is_over.is_set():
            try:
                self._take(one)
            except (trigmon.MQError, OSError):
                time.sleep(0.05)

    def _take(self, one: Daemon) -> None:
        with one.connect() as qm, qm.open(self._q_name, "input_shared") as initiation:
            while not self._is_over.is_set():
                try:
                    message = initiation.get(syncpoint=True, wait_interval_ms=200)
                except trigmon.NoMsgAvailable:
                    continue
                # Noted before the commit: what is backed out comes once more, with the same id.
                digits = message.descriptor.correl_id.removeprefix(b"MOMENT ").rstrip(b"\0")
                self.moments[message.descriptor.msg_id] = int(digits)
                qm.commit()

    def end(self) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join(60)


@pytest.mark.parametrize("kills", COUNTS)
def test_a_group_starts_each_moment_once_while_its_members_are_killed(daemon, kills):
    chance = random.Random(kills)
    three = members(daemon, "QM1", "QM2", "QM3")
    share(three[0], "I", max_q_depth=999_999)
    share(three[0], "Q", process_name="P", initiation_q_name="I", trigger_type="every")
    sees(*three, q_name="Q")
    sees(*three, q_name="I")
    for one in three:
        with one.connect() as qm:
            define(qm, "P", "PROCESS", appl_id="true")
    listeners = Listeners(three, "I")
    with three[0].connect() as qm:
        define(qm, "S", "SCHEDULE", q_name="Q", qsg_disp="group", **EACH_SECOND)
    until(lambda: listeners.moments)
    for _ in range(kills):
        time.sleep(chance.uniform(0.1, 2.0))
        one = chance.choice(three)
        one.kill()
        one.start()
    began_ms = time.time() * 1000
    last_ms = 0
    for one in three:
        with one.connect() as qm:
            until(lambda qm=qm: schedule_of(qm, "S")["last_moment_ms"] > began_ms)
            qm.call(Pause(what="schedule", name="S"))
    for one in three:
        with one.connect() as qm:
            last_ms = max(last_ms, schedule_of(qm, "S")["last_start_ms"])
            assert len(list(all_rows(qm.call, Display(object_type="SCHEDULE", name="S")))) == 1
    until(lambda: last_ms in listeners.moments.values())
    listeners.end()
    moments = list(listeners.moments.values())
    assert_each_second_once(moments, min(moments), last_ms)

"""A monitor in a thread of the test, on an initiation queue of the test's own, and programs it can start."""

from __future__ import annotations

import threading

import pytest

from tests.daemons import define
from tests.monitor.monitored_machine import MonitoredMachine
from tests.waiting import until
from trigmon.monitor import monitor
from trigmon.monitor.child_process import Limits
from trigmon.mq.calls import Alter, Display, Runs

WAIT_S = 600.0


class Stage:
    """What a test of the monitor works with: names end in the test's own number, so tests do not meet."""

    def __init__(self, daemon, qm, directory, number):
        self.daemon, self.qm, self.directory = daemon, qm, directory
        self.initq = f"INITQ.{number}"
        self.number = number
        self.data = directory / "data"
        define(qm, self.initq)
        self._monitors = []

    def program(self, text, name="job"):
        """Writes an executable shell script and returns its path."""
        file = self.directory / name
        file.write_text(f"#!/bin/sh\n{text}\n")
        file.chmod(0o755)
        return file

    def queue(self, appl_id, name="Q", trigger_type="every", appl_type="unix", trigger_data="", **process):
        """Defines a queue whose trigger starts ``appl_id`` and returns its name."""
        name = f"{name}.{self.number}"
        define(self.qm, f"{name}.P", "PROCESS", appl_id=str(appl_id), appl_type=appl_type, **process)
        wanted = {"trigger_control": "on", "trigger_type": trigger_type, "trigger_data": trigger_data}
        define(self.qm, name, process_name=f"{name}.P", initiation_q_name=self.initq, **wanted)
        return name

    def watch(self, instances=4, time_limit_s=0, grace_s=1, runs=0, **settings):
        """Starts a monitor and waits until it reads the initiation queue; returns a function that stops it."""
        stop, ready, ended = threading.Event(), threading.Event(), []
        limits = Limits(instances, time_limit_s, grace_s, runs)
        settings = {"initiation_q": self.initq, "data": self.data, "stop_runs": True, "limits": limits} | settings
        options = monitor.MonitorOptions(**settings)

        def run():
            try:
                monitor.run(self.daemon.address, options, stop=stop, ready=ready.set)
            except BaseException as error:
                ended.append(error)
                ready.set()

        thread = threading.Thread(target=run)
        thread.start()

        def end():
            stop.set()
            thread.join(WAIT_S)
            assert not thread.is_alive()
            if ended:
                raise ended.pop()

        self._monitors.append(end)
        assert ready.wait(WAIT_S)
        return end

    def runs(self, **where):
        """Returns the ledger's records, oldest first."""
        return self.qm.call(Runs(where=where)).rows[::-1]

    def wait_for(self, count=1, **where):
        """Waits for so many runs and returns their records."""
        return until(lambda: found if len(found := self.runs(**where)) >= count else None)

    def depth(self, q_name):
        return self.qm.call(Display(object_type="QLOCAL", name=q_name)).rows[0]["current_q_depth"]

    def end(self):
        for end in self._monitors:
            end()


_numbers = iter(range(1, 10_000))


@pytest.fixture
def stage(shared_daemon, qm, tmp_path):
    made = Stage(shared_daemon, qm, tmp_path, next(_numbers))
    yield made
    made.end()


@pytest.fixture
def dead_letters(qm):
    """Names the dead-letter queue and empties it."""
    name = "SYSTEM.DEAD.LETTER.QUEUE"
    qm.call(Alter(object_type="QMGR", name="QM1", attributes={"dead_letter_q_name": name}))
    with qm.open(name, "input_shared") as opened:
        list(opened.drain())
        yield opened
    qm.call(Alter(object_type="QMGR", name="QM1", attributes={"dead_letter_q_name": ""}))


@pytest.fixture
def machine(daemon, tmp_path):
    """Yields a queue manager without a monitor; what the test has started ends with it."""
    made = MonitoredMachine(daemon(), tmp_path)
    yield made
    made.end()

"""A real queue manager with a real monitor, and programs that end well, end badly, or wait."""

import sys

import pytest

from tests.daemons import define
from tests.waiting import until
from trigmon.console.overview import read_overview
from trigmon.mq.calls import Delete

INITQ = "SYSTEM.DEFAULT.INITIATION.QUEUE"
PROGRAMS = {
    # Takes what is there, and ends.
    "GOOD": """
import trigmon
with trigmon.connect() as qm, qm.open(trigmon.triggered().q_name, "input_shared") as queue:
    for message in queue.drain():
        print("took", len(message.data))
""",
    "BAD": """
import sys
print("it begins", file=sys.stderr)
sys.exit("ValueError: cannot parse b'bad'")
""",
    # Reads the queue and takes nothing, as a batch read of Spark does.
    "IDLE": """
import trigmon
with trigmon.connect() as qm, qm.open(trigmon.triggered().q_name, "browse") as queue:
    print(len(list(queue.browse())))
""",
    # Takes one message, and then waits until it is ended.
    "SLOW": """
import time, trigmon
with trigmon.connect() as qm, qm.open(trigmon.triggered().q_name, "input_shared") as queue:
    queue.get()
    qm.commit()
    print("it waits", flush=True)
    time.sleep(600)
""",
}


class Machine:
    """A daemon with a monitor, and a process for each of PROGRAMS."""

    def __init__(self, daemon):
        self.daemon = daemon
        self.qm = daemon.connect()
        for name, text in PROGRAMS.items():
            script = daemon.home / f"{name}.py"
            script.write_text(text)
            define(self.qm, name, "PROCESS", appl_type="unix", appl_id=f"{sys.executable} {script}", retry=0, breaker=0)

    def queue(self, name, process="", **attributes):
        """Defines a queue, that triggers when a process is named."""
        triggers = {"trigger_control": "on", "trigger_type": "first", "process_name": process}
        given = triggers | {"initiation_q_name": INITQ} if process else {}
        define(self.qm, name, def_persistence="persistent", **given | attributes)
        return name


@pytest.fixture
def machine(daemon):
    """Yields a Machine that is the test's own."""
    made = Machine(daemon(with_monitor=True))
    made.queue("READY", "GOOD")
    until(lambda: read_overview(made.qm).monitors, 120)
    made.qm.call(Delete(object_type="QLOCAL", name="READY"))
    yield made
    made.qm.drop()

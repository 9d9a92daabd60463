"""A queue manager with something of everything that the web console shows: good, bad, waiting and hostile."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from tests.daemons import Daemon, define
from tests.waiting import until
from trigmon.mq.calls import Alter, Runs
from trigmon.mq.descriptors import FORMAT_TRIGGER, TriggerMessage, pack_tm
from trigmon.mq.enums import ApplType
from trigmon.mq.replies import Listing

INITQ = "SYSTEM.DEFAULT.INITIATION.QUEUE"
DEADQ = "SYSTEM.DEAD.LETTER.QUEUE"
MARKUP = "<script>alert('x')</script>"
SECRET = "the customer's number is 4711"

_DRAIN = """\
import sys, trigmon
print("begins")
with trigmon.connect() as qm, qm.open(trigmon.triggered().q_name, "input_shared") as queue:
    for message in queue.drain(batch=1):
        text = message.data.decode()
        print("took", text)
        if "bad" in text:
            sys.exit(f"cannot parse {text}")
"""
_WAIT = """\
import pathlib, sys, time, trigmon
with trigmon.connect() as qm, qm.open(trigmon.triggered().q_name, "input_shared") as queue:
    queue.get(wait_interval_ms=5000)
    number = 0
    while not pathlib.Path(sys.argv[1]).exists():
        number += 1
        print("line", number, flush=True)
        time.sleep(0.05)
    print("\\u00e4nd", flush=True)
    print("<script>alert('x')</script>", file=sys.stderr, flush=True)
"""


class Populated:
    """The queue manager, its objects, and the file whose coming ends the program that waits."""

    def __init__(self, daemon: Daemon, directory: Path) -> None:
        self.daemon = daemon
        self.end_file = directory / "end"
        drain, wait = directory / "drain.py", directory / "wait.py"
        drain.write_text(_DRAIN)
        wait.write_text(_WAIT)
        with daemon.connect() as qm:
            qm.call(Alter(object_type="QMGR", name="", attributes={"dead_letter_q_name": DEADQ}))
            self._define(qm, drain, wait)

    def _define(self, qm, drain, wait):
        on = {"trigger_control": "on", "initiation_q_name": INITQ, "def_persistence": "persistent"}
        define(qm, "P.DRAIN", "PROCESS", appl_id=f"{sys.executable} {drain}", tmc_argument="no", retry=0)
        define(qm, "P.WAIT", "PROCESS", appl_id=f"{sys.executable} {wait} {self.end_file}", tmc_argument="no", retry=0)
        define(qm, "P.FAIL", "PROCESS", appl_id="sh -c 'echo no such column >&2; exit 3'", tmc_argument="no", breaker=1)
        define(qm, "ORDERS.FAILED", def_persistence="persistent")
        aside = {"backout_threshold": 1, "backout_requeue": "qmgr", "backout_requeue_q_name": "ORDERS.FAILED"}
        define(qm, "ORDERS", process_name="P.DRAIN", trigger_type="first", description=MARKUP, **on, **aside)
        define(qm, "WAITS", process_name="P.WAIT", **on)
        define(qm, "FAILS", process_name="P.FAIL", **on)
        define(qm, "PLAIN", max_q_depth=20)
        define(qm, "A/ODD%NAME")
        define(qm, "ALIAS", "QALIAS", base_q_name="PLAIN")

    def fill(self):
        """Puts messages of all fates, and waits until what they start has ended or waits."""
        with self.daemon.connect() as qm:
            for number in range(12):
                qm.put("PLAIN", f"{SECRET} {number} {MARKUP}", priority=number % 3)
            qm.put("ORDERS", "a good order")
            qm.put("ORDERS", "a bad order")
            qm.put("FAILS", "one")
            qm.put("WAITS", "one")
            unknown = TriggerMessage(q_name="NONE", process_name="NONE", appl_type=int(ApplType.UNIX), appl_id="true")
            for _ in range(3):
                qm.put(INITQ, pack_tm(unknown), format=FORMAT_TRIGGER)
            until(lambda: self.run_of("FAILS", "exited"))
            until(lambda: self.run_of("WAITS", "serving"))
            until(lambda: qm.explain("ORDERS.FAILED").values["current_q_depth"])
            until(lambda: qm.explain(DEADQ).values["current_q_depth"] == 3)
        return self

    def run_of(self, q_name, state=None):
        """Returns the newest run for a queue, if there is one, in this state."""
        where = {"q_name": q_name} | ({"state": state} if state else {})
        with self.daemon.connect() as qm:
            rows = qm.ask(Runs(where=where, limit=1), Listing).rows
        return rows[0] if rows else None

    def end(self):
        """Ends the program that waits."""
        self.end_file.write_text("")
        until(lambda: not self.run_of("WAITS") or self.run_of("WAITS")["end_ms"])


if __name__ == "__main__":
    home = Path(sys.argv[1])
    home.mkdir(exist_ok=True)
    made = Populated(Daemon(home, with_monitor=True).start(), home).fill()
    print(made.daemon.home)
    try:
        while True:
            time.sleep(1)
    finally:
        made.end()
        made.daemon.end()

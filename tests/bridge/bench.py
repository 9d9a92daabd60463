"""A queue manager that plays the one elsewhere, reached only through IBM's ``ibmmq`` on trigmon's C library."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
from collections import Counter

from tests.daemons import Daemon, define
from tests.monitor.killing import Proxy, frames
from tests.waiting import until
from trigmon.mq.calls import Alter, Display, Runs, Status

INITQ = "SYSTEM.DEFAULT.INITIATION.QUEUE"
DEADQ = "SYSTEM.DEAD.LETTER.QUEUE"
OPEN = ("held", "due", "started")
DRAINS = """\
import os
import sys

import ibmmq as mq

there = mq.TMC2().unpack(os.environ["TRIGMON_TMC"].encode())
assert os.environ["MQSERVER"] and os.environ["TRIGMON_QMGR"] == "PROD"
qmgr = mq.QueueManager(None)
qmgr.connect_with_options(there["QMgrName"].strip(b" \\0"), cno=mq.CNO())
queue = mq.Queue(qmgr, there["QName"].strip(b" \\0").decode(), mq.CMQC.MQOO_INPUT_SHARED)
gmo = mq.GMO(Options=mq.CMQC.MQGMO_SYNCPOINT)
for _ in range(int(sys.argv[1])):
    try:
        queue.get(None, mq.MD(), gmo)
    except mq.MQMIError as error:
        assert error.reason == mq.CMQC.MQRC_NO_MSG_AVAILABLE, error
        break
qmgr.commit()
queue.close()
qmgr.disconnect()
"""


class Bench:
    """``here`` is QM1, trigmon's own, ``there`` is PROD, the one elsewhere; ``qm`` and ``far`` are their clients.

    Both are in one home, where PROD is found by its name; ``here`` and ``there`` are others in their place.
    """

    def __init__(self, home, library_directory, *, here=None, there=None, **bridge):
        self.home = home
        self.here = (here or Daemon(home, "QM1")).start()
        self.there = (there or Daemon(home, "PROD")).start()
        self.library = str(library_directory)
        self.qm, self.far = self.here.connect(), self.there.connect()
        self.far.call(Alter(object_type="QMGR", name="PROD", attributes={"dead_letter_q_name": DEADQ}))
        self.qm.call(Alter(object_type="QMGR", name="QM1", attributes={"dead_letter_q_name": DEADQ}))
        self.notes = home / "notes"
        self.notes.touch()
        self.settings = {"queue_manager": "PROD", "mqserver": "APP.SVRCONN/TCP/localhost(1414)"}
        self.settings |= {"initiation_queues": [INITQ], "wait_s": 0.2} | bridge
        self.monitors = []
        self.more = {}  # bridges beside FAR, by name
        self.variables = {}  # of the monitors' environment
        self.readers = 0  # how many handles of the test's own the initiation queue there has

    def program(self, text, name="job"):
        """Writes an executable shell script and returns its path."""
        file = self.home / name
        file.write_text(f"#!/bin/sh\n{text}\n")
        file.chmod(0o755)
        return str(file)

    def process(self, name="P", appl_id=None, **attributes):
        """Defines a process here; unless told otherwise it notes each of its starts."""
        define(self.qm, name, "PROCESS", appl_id=appl_id or self.noting(), **attributes)
        return name

    def noting(self, then="exit 0"):
        return self.program(f"echo $TRIGMON_RUN $TRIGMON_QNAME $TRIGMON_QMGR >> {self.notes}; {then}", "notes.sh")

    def queue(self, name="Q", process="P", trigger_type="every", **attributes):
        """Defines a process of that name and a triggered queue there; its APPLICID there must never be executed."""
        with contextlib.suppress(Exception):
            define(self.far, process, "PROCESS", appl_id=f"/bin/touch {self.home}/EVIL")
        wanted = {"trigger_control": "on", "trigger_type": trigger_type, "initiation_q_name": INITQ}
        define(self.far, name, process_name=process, max_q_depth=100_000, **(wanted | attributes))
        return name

    def config(self):
        """Writes the settings file of this side, which has the bridges; returns its path."""
        config = self.home / "trigmon.yaml"
        lines = ["bridges:"]
        for name, bridge in ({"FAR": self.settings} | self.more).items():
            given = {key: value for key, value in bridge.items() if value is not None}
            lines += [f"  {name}:", *(f"    {key}: {value}" for key, value in given.items())]
        config.write_text("\n".join(lines) + "\n")
        return str(config)

    def monitor(self, home=None, address=None, library=True):
        """Starts a monitor in a process of its own."""
        env = self.here.env | self.variables | {"TRIGMON_CONFIG": self.config(), "TRIGMON_MONITOR_GRACE_S": "1"}
        env["TRIGMON_MONITOR_ENVIRONMENT"] = f"LD_LIBRARY_PATH={self.library}"
        env["PYTHONWARNINGS"] = "ignore"  # ibmmq's own
        env["TRIGMON_LOG_FORMAT"] = "json"
        if library:
            env["LD_LIBRARY_PATH"] = self.library
        if home is not None:
            env["TRIGMON_HOME"] = str(home)
        options = ["--qmgr", address] if address else []
        argv = [sys.executable, "-m", "trigmon", *options, "monitor", "--data", str(self.here.data)]
        with self.log.open("ab") as log:
            self.monitors.append(subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, stderr=log))
        return self.monitors[-1]

    @property
    def log(self):
        return self.home / "monitor.log"

    def problem(self):
        """Returns why the bridge is not served, "" where it is, by the status."""
        bridges = self.qm.call(Status()).values["bridges"]
        return bridges[0]["problem"] if bridges else ""

    def serves(self):
        """Whether a monitor has the initiation queue there open."""
        name = self.settings["initiation_queues"][0]
        return self.far.call(Display(object_type="QLOCAL", name=name)).rows[0]["open_input_count"] > self.readers

    def monitored(self, **named):
        """Starts a monitor, and waits until it serves the bridge."""
        monitor = self.monitor(**named)
        until(lambda: self.serves() or monitor.poll() is not None, 120)
        assert monitor.poll() is None, self.log.read_text()
        return monitor

    def runs(self, **where):
        """Returns the ledger's records, oldest first."""
        found, before, more = [], "", True
        while more:
            reply = self.qm.call(Runs(where=where, before=before))
            found += reply.rows
            before, more = found[-1]["run_id"] if found else "", reply.more
        return found[::-1]

    def ended(self, count, **where):
        """Waits until so many runs are there and none is under way; returns them."""

        def found():
            runs = self.runs(**where)
            return runs if len(runs) >= count and not any(run["state"] in OPEN for run in runs) else None

        return until(found, 300)

    def depth(self, name, connection=None):
        return (connection or self.far).call(Display(object_type="QLOCAL", name=name)).rows[0]["current_q_depth"]

    def judge(self, messages):
        """Each trigger message has one run, and each run had one start."""
        runs = self.ended(messages)
        assert len({run["remote_msg_id"] for run in runs}) == len(runs) == messages
        assert Counter(line.split()[0] for line in self.notes.read_text().splitlines()) == {
            run["run_id"]: 1 for run in runs
        }
        assert {(run["state"], run["exit_status"]) for run in runs} == {("exited", 0)}, Counter(
            (run["state"], run["why"]) for run in runs
        )

    def stop(self, monitor):
        monitor.terminate()
        assert monitor.wait(30) == 0, self.log.read_text()

    def end(self):
        for monitor in self.monitors:
            if monitor.poll() is None:
                monitor.terminate()
                monitor.wait(30)
        for one in (self.qm, self.far):
            with contextlib.suppress(Exception):
                one.disconnect()
        for daemon in (self.there, self.here):
            daemon.end()
            assert not daemon.events("a call failed by a bug"), daemon.events("a call failed by a bug")


class Road:
    """A home in which both queue managers are reached through a proxy that counts messages and kills at one."""

    def __init__(self, bench, directory):
        self.proxy = Proxy()
        self.home = directory
        self.address = f"unix:{directory}/qm1"
        for path, daemon in ((directory / "qm1", bench.here), (Daemon(directory, "PROD").socket, bench.there)):
            path.parent.mkdir(parents=True, exist_ok=True)
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(str(path))
            listener.listen()
            self.proxy.forward(listener, daemon.plain_socket, frames)
        self.proxy.start()

    def end(self):
        self.proxy.end()

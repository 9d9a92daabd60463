"""A queue manager with a monitor that keeps a Spark Connect server, and jobs that are started warm."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path

from tests.daemons import define
from tests.spark.driver_page import read_page
from tests.waiting import until
from trigmon.keeper import run_directory
from trigmon.launch.spark.warm import connect_server
from trigmon.mq.calls import Runs

INITQ = "SYSTEM.DEFAULT.INITIATION.QUEUE"
WARM_S = 500.0
RUN_S = 600.0

NOTE = """\
import json, os, sys, time
import trigmon
from pyspark.sql import SparkSession

def note(**fields):
    with open(os.path.join(sys.argv[1], os.environ["TRIGMON_RUN"]), "a") as file:
        print(json.dumps({"at": time.time(), **fields}), file=file, flush=True)

"""

JOB = (
    NOTE
    + """\
with trigmon.connect() as qm, qm.open(os.environ["TRIGMON_QNAME"], "input_shared") as queue:
    queue.get()
spark = SparkSession.builder.getOrCreate()
note(rows=len(spark.range(10).collect()), session=spark.session_id, tags=sorted(spark.getTags()))
"""
)

# A query that goes on until somebody ends it, on one core, without a worker of Python's.
ENDLESS = """\
note(began=True)
spark.sql("SELECT count(*) FROM range(0, 1000000000000, 1, 1) WHERE hash(id, rand()) = 1").collect()
note(ended=True)
"""


class WarmMachine:
    """What a test of warm runs works with."""

    def __init__(self, daemon, directory, **settings):
        self.directory = directory
        self.notes = directory / "notes"
        self.notes.mkdir()
        settings = {"connect.master": "local[2]", "connect.memory": "600m"} | settings
        self.daemon = daemon(with_monitor=True, start=False, settings=settings)
        self.daemon.start()
        self.shelf = connect_server.Shelf(self.daemon.data)
        self.qm = self.daemon.connect()
        self.queues = 0

    def job(self, text="", name="job", *, beginning=JOB, trigger_type="every", **process):
        """Defines a queue whose every message starts a warm job of this text, after the usual beginning."""
        script = self.directory / f"{name}.py"
        script.write_text(beginning + text)
        named = {"spark_start": "connect", "spark_arguments": str(self.notes), "retry": 0} | process
        define(self.qm, name.upper(), "PROCESS", appl_type="spark", appl_id=str(script), **named)
        wanted = {"trigger_control": "on", "trigger_type": trigger_type, "initiation_q_name": INITQ}
        define(self.qm, f"{name.upper()}.Q", process_name=name.upper(), def_persistence="persistent", **wanted)
        return f"{name.upper()}.Q"

    def runs(self, **where):
        """Returns the ledger's records, oldest first."""
        return self.qm.call(Runs(where=where)).rows[::-1]

    def wait_for_runs(self, count=1, timeout_s=RUN_S, **where):
        return until(lambda: found if len(found := self.runs(**where)) >= count else None, timeout_s)

    def wait_until_there(self, besides=(), event="Spark Connect server answers"):
        """Waits for a server that runs are sent to, other than the known ones, and returns it."""

        def found():
            if self.daemon.process.poll() is not None:
                raise AssertionError(self.daemon.log.read_text())
            reported = {line["server"] for line in self.daemon.events(event)}
            return next((it for it in self.shelf.all_servers() if it.server_id in reported - set(besides)), None)

        return until(found, WARM_S)

    def lines(self, run_id):
        """Returns the notes of a run's job."""
        file = self.notes / run_id
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def wait_for_line(self, run_id, name):
        return until(lambda: next((line for line in self.lines(run_id) if name in line), None), RUN_S)

    def pid(self, server):
        return run_directory.read(self.shelf.directory(server.server_id))["pid"]

    def pages(self, server, path):
        """Returns a page of a server's web server."""
        for _ in range(5):
            with suppress(OSError):
                return read_page(f"{server.ui}{path}", server.page_key)
        raise AssertionError(f"no answer to {path}")

    def sessions(self, server):
        """Returns how many sessions a server has, without that of the health check."""
        found = re.search(r"(\d+)\s*session\(s\) are online", self.pages(server, "/connect/"))
        return int(found[1]) - 1

    def jobs(self, server):
        """Returns the tags of the jobs that run on a server."""
        (application,) = json.loads(self.pages(server, "/api/v1/applications"))
        path = f"/api/v1/applications/{application['id']}/jobs?status=running"
        return [job.get("jobTags", []) for job in json.loads(self.pages(server, path))]

    def works(self, server, run_id):
        """Returns whether queries of a run are active."""
        return any(tag.endswith(f"Tag_{run_id}") for tags in self.jobs(server) for tag in tags)

    def keeper(self):
        """Returns the process id of the monitor's keeper."""
        (found,) = [line["pid"] for line in self.daemon.events("keeper started")][-1:]
        return found

    def end(self):
        self.qm.drop()
        pids = [
            self.pid(server)
            for server in self.shelf.all_servers()
            if run_directory.read(self.shelf.directory(server.server_id))
        ]
        self.daemon.end()
        for pid in pids:
            until(lambda pid=pid: not Path(f"/proc/{pid}").exists() or run_directory.start_ticks(pid) == 0)


def begin_endless(machine, server=None):
    """Starts a run whose query never ends on the server (default: the kept one) and returns its record."""
    before = {run["run_id"] for run in machine.runs()}
    machine.qm.put("ENDLESS.Q", b"go")
    run_id = until(lambda: next((run["run_id"] for run in machine.runs() if run["run_id"] not in before), None))
    machine.wait_for_line(run_id, "began")
    server = server or machine.wait_until_there()
    until(lambda: machine.works(server, run_id))
    return machine.runs(run_id=run_id)[0]


def ended(machine, run_id):
    """Waits for the end of a run and returns its record."""
    return until(lambda: next((run for run in machine.runs(run_id=run_id) if run["end_ms"]), None))


def is_left_alone(machine, server, run_id):
    """Waits until no query of the run is active, and no session is left but that of the health check."""
    until(lambda: not machine.works(server, run_id))
    until(lambda: not machine.shelf.session(run_id))
    return until(lambda: machine.sessions(server) == 0)

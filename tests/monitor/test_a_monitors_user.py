"""What a program of the monitor's user can do to be started as a RUNAS user: nothing, in a real machine of its own.

The monitor has the rights that systemd/trigmon-monitor-runas.conf gives; the attacker is a process of its user without
any. It writes the ledger under the monitor's name, asks the keeper, lays claims, and kills and replaces what it may.
"""

from __future__ import annotations

import json
import os
import pwd
import signal
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import pytest

import trigmon
from tests.daemons import define
from tests.waiting import until
from trigmon.mq.calls import Pause, Resume, Runs

INITQ = "SYSTEM.DEFAULT.INITIATION.QUEUE"
MONITOR, TARGET = "games", "nobody"
PATH = os.pathsep.join([str(Path(trigmon.__file__).parents[1]), sysconfig.get_path("purelib")])
RIGHTS = "+setuid,+setgid,+kill,+chown"

ATTACK = r"""
import json, os, signal, socket, sys, time
from pathlib import Path
import trigmon
from trigmon.mq.calls import ChangeRun, GetMany, Open, Put, RecordRun, RecordRuns, Runs, StartRuns
from trigmon.mq.descriptors import FORMAT_TRIGGER, MessageDescriptor, TriggerMessage, pack_tm
from trigmon.mq.enums import GetOption, OpenOption, PutOption
from trigmon.mq.errors import MQError

address, monitor, pid, data, pwn = sys.argv[1:]
answers = {}
qm = trigmon.connect(address, application="trigmon monitor", run_id="")

def tries(name, call):
    try:
        answers[name] = str(qm.call(call))
    except MQError as error:
        answers[name] = f"refused {int(error.reason)}"

words = {"q_name": "Q", "process_name": "AS.JOB", "trigger_data": "", "appl_type": 6, "appl_id": pwn, "env_data": ""}
words |= {"user_data": "", "occasion": "1", "initiation_q": "SYSTEM.DEFAULT.INITIATION.QUEUE", "monitor": monitor}
for number, state in enumerate(("due", "held", "started", "serving", "drained", "")):
    tries(f"record {state}", RecordRun(run_id=f"1a20bbbbbbbb458{number}", record={**words, "state": state}))
tries("records due", RecordRuns(records=[{**words, "run_id": "1a20bbbbbbbb4590", "state": "due"}]))
program = {"run_as": "nobody"}
tries("with a process", RecordRun(run_id="1a20bbbbbbbb4591", record={**words, "state": "due", "process": program}))
tries("without one", RecordRun(run_id="1a20bbbbbbbb4592", record={**words, "process_name": "", "state": "due"}))
for run in qm.call(Runs()).rows:
    for fields in ({"appl_id": pwn}, {"process": {"run_as": "daemon"}}, {"appl_id": pwn, "state": "due"}):
        tries(f"change {run['state']} {sorted(fields)}", ChangeRun(run_id=run["run_id"], fields=fields))
    if run["state"] == "exited":
        for state in ("due", "held", ""):
            tries(f"reopen {state}", ChangeRun(run_id=run["run_id"], fields={"state": state, "monitor": monitor}))
tries("failed", RecordRun(run_id="1a20bbbbbbbb4593", record={**words, "state": "failed"}))
tries("failed, then due", ChangeRun(run_id="1a20bbbbbbbb4593", fields={"state": "due"}))

# A genuine context on a forged trigger message, got and recorded like any other.
message = pack_tm(TriggerMessage(**{name: words[name] for name in TriggerMessage.__struct_fields__}))
letter = MessageDescriptor(format=FORMAT_TRIGGER)
tries("forged", Put(q_name=words["initiation_q"], descriptor=letter, data=message))
opened = qm.call(Open(object_name=words["initiation_q"], options=int(OpenOption.INPUT_SHARED)))
os.kill(int(pid), signal.SIGSTOP)
qm.call(Put(q_name=words["initiation_q"], descriptor=letter, data=message))
unit = qm.unit
tries("got", GetMany(handle=opened.handle, count=8, options=int(GetOption.SYNCPOINT), unit=unit))
tries("got and recorded", RecordRuns(records=[{**words, "run_id": "1a20bbbbbbbb4594", "state": "due"}], unit=unit))

# The keeper, which has the right, is asked by one who has not.
for path in filter(Path.is_socket, (Path(data) / "monitors").iterdir()):
    link = socket.socket(socket.AF_UNIX)
    link.settimeout(20)
    link.connect(str(path))
    for name, uid in (("nobody", 65534), ("root", 0)):
        user = {"name": name, "uid": uid, "gid": uid, "groups": [uid]}
        run = f"1a20bbbbbbbb46{uid:02x}"[:16]
        order = {"say": "start", "run": run, "argv": [pwn], "environment": {}, "working_directory": "/", "user": user}
        order |= {"directory": f"{data}/runs/{run}", "time_limit_s": 0, "grace_s": 1, "launcher": "process"}
        link.sendall(json.dumps(order).encode() + b"\n")
    heard = b""
    while heard.count(b'"failed"') < 2:
        heard += link.recv(65536)
    answers[f"keeper {path.name}"] = "refused" if b'"started"' not in heard else heard.decode()

# Claims that a new monitor is to adopt, and a process that would go on for a run.
for run in qm.call(Runs()).rows:
    if run["state"] == "held":
        directory = Path(data) / "runs" / run["run_id"]
        directory.mkdir(parents=True)
        claim = {"keeper": "", "boot": "x", "pid": os.getpid(), "argv": [pwn], "user": "nobody"}
        (directory / "claim").write_text(json.dumps(claim) + "\n")
        (directory / "again-1").mkdir()
        (directory / "again-1" / "claim").write_text(json.dumps(claim) + "\n")
os.kill(int(pid), signal.SIGKILL)
print(json.dumps(answers))
"""


class ThreeUserMachine:
    """A daemon of root's, a monitor of another user's with the right to become a third, and a job for that one."""

    def __init__(self, daemon, python):
        self.daemon, self.python = daemon, python
        self.open = Path(tempfile.mkdtemp(prefix="open-", dir=daemon.home))
        self.open.chmod(0o1777)
        self.mine = daemon.home / "monitors-own"
        self.mine.mkdir()
        os.chown(self.mine, pwd.getpwnam(MONITOR).pw_uid, pwd.getpwnam(MONITOR).pw_gid)
        users = daemon.home / "users"
        users.write_text(f"{TARGET}\n")
        daemon.settings |= {"server.monitors": MONITOR, "server.socket_mode": "0666"}
        daemon.settings |= {"monitor.run_as_file": users, "monitor.max_runs": 4}
        daemon.start()
        self.log = daemon.home / "monitor.log"
        self.monitor = None
        self.connection = daemon.connect()
        job, self.pwn = self.script("job", "did"), self.script("pwn", "pwned")
        define(self.connection, "AS.JOB", "PROCESS", appl_id=str(job), run_as=TARGET)
        armed = {"trigger_control": "on", "trigger_type": "every", "initiation_q_name": INITQ}
        define(self.connection, "Q", process_name="AS.JOB", **armed)

    def script(self, name, word):
        path = self.open / name
        path.write_text(f"#!/bin/sh\nid -un > {self.open}/{word}.$(id -un).$$\n")
        path.chmod(0o755)
        return path

    def made(self, word):
        return [path.name for path in self.open.glob(f"{word}.*")]

    def as_monitor(self, *rights):
        return ["setpriv", "--reuid", MONITOR, "--regid", MONITOR, "--clear-groups", *rights, self.python]

    @property
    def environment(self):
        where = {"TRIGMON_HOME": str(self.mine), "TRIGMON_QMGR": self.daemon.address, "PYTHONPATH": PATH}
        return self.daemon.env | where

    def start_monitor(self):
        before = self.serving()
        argv = self.as_monitor("--inh-caps", RIGHTS, "--ambient-caps", RIGHTS)
        with self.log.open("ab") as log:
            argv += ["-m", "trigmon", "monitor"]
            self.monitor = subprocess.Popen(argv, env=self.environment, stdin=subprocess.DEVNULL, stderr=log, cwd="/")
        until(lambda: self.serving() > before, timeout_s=60)

    def serving(self):
        return self.log.read_text().count('"monitor serves"') if self.log.exists() else 0

    def rows(self, **where):
        return self.connection.call(Runs(where=where)).rows

    def wait_for_ends(self, count):
        until(lambda: len(self.rows(state="exited")) >= count)

    def ambient(self):
        """What a process would inherit, that a thread of the monitor's executes."""
        reported = [task.read_text() for task in Path(f"/proc/{self.monitor.pid}/task").glob("*/status")]
        return {
            int(line.split()[1], 16) for text in reported for line in text.splitlines() if line.startswith("CapAmb:")
        }

    def put(self):
        """A genuine trigger event."""
        self.connection.put("Q", b"go")

    def end(self):
        if self.monitor is not None and self.monitor.poll() is None:
            self.monitor.send_signal(signal.SIGTERM)
            self.monitor.wait(30)
        self.connection.disconnect()


@pytest.fixture
def machine(passable):
    made = ThreeUserMachine(passable(start=False), python_for_others())
    yield made
    made.end()


def python_for_others():
    """A Python like this one that the monitor's user can run by itself, as a monitor runs its keeper."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    itself = "import subprocess, sys, trigmon.cli.main; subprocess.run([sys.executable, '-c', ''], check=True)"
    for python in (sys.executable, f"/usr/bin/{version}", f"/usr/local/bin/{version}"):
        argv = ["setpriv", "--reuid", MONITOR, "--regid", MONITOR, "--clear-groups", python, "-c", itself]
        if not subprocess.run(argv, env={"PYTHONPATH": PATH}, check=False, capture_output=True, cwd="/").returncode:
            return python
    pytest.skip("no Python like this one can be run by another user")


def test_no_program_of_the_monitors_user_has_its_own_program_started_as_a_runas_user(machine):
    machine.start_monitor()
    machine.put()
    machine.wait_for_ends(1)
    assert [name.split(".")[1] for name in machine.made("did")] == [TARGET]
    assert machine.ambient() == {0}
    machine.connection.call(Pause(what="queue", name="Q"))
    machine.put()
    until(lambda: machine.rows(state="held"))
    (name,) = {row["monitor"] for row in machine.rows()}
    data = machine.mine / machine.daemon.name
    argv = [
        *machine.as_monitor(),
        "-c",
        ATTACK,
        machine.daemon.address,
        name,
        str(machine.monitor.pid),
        data,
        machine.pwn,
    ]
    done = subprocess.run(
        argv, env=machine.environment, capture_output=True, text=True, timeout=600, check=False, cwd="/"
    )
    assert done.returncode == 0, done.stderr
    reported = json.loads(done.stdout)
    machine.monitor.wait(30)

    machine.start_monitor()
    machine.connection.call(Resume(what="queue", name="Q"))
    machine.put()
    machine.wait_for_ends(2)
    assert machine.made("pwned") == []
    assert {row["appl_id"] for row in machine.rows() if row["state"] != "failed"} == {str(machine.open / "job")}
    assert {name.split(".")[1] for name in machine.made("did")} == {TARGET}
    open_to_all = ("failed", "forged", "reopen", "keeper")
    asked = {what: answer for what, answer in reported.items() if what != "got" and not what.startswith(open_to_all)}
    assert set(asked.values()) == {"refused 2035"}, asked
    assert len(asked) >= 15
    assert {answer for what, answer in reported.items() if what.startswith("keeper")} == {"refused"}
    assert reported["got and recorded"] == "refused 2035"

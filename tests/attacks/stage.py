"""What is attacked: a queue manager and a monitor as users of their own, their files, programs and messages."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import trigmon
from tests.attacks.table import MEMBER, MONITOR, STRANGER, TCP
from tests.attacks.users import Actor, User, free_numbers, packages
from tests.daemons import Daemon, define
from tests.processes import parent_of
from tests.waiting import until
from trigmon.mq.calls import Alter, Display, Pauses, RetryDeadLetters, Runs

INITQ = "SYSTEM.DEFAULT.INITIATION.QUEUE"
DLQ = "SYSTEM.DEAD.LETTER.QUEUE"
CONNECTIONS = 64
BUSY = ("held", "due", "started", "serving", "drained")
SECRET = "5ecret of the jobs"
TARGET = "nobody"  # as whom a program runs that says RUNAS
_CAPABILITIES = "+setuid,+setgid,+kill,+chown"
_VOLATILE = ("open_input_count", "open_output_count", "uncommitted_msgs", "altered_ms")


@dataclass
class Place:
    """What an attacker knows: addresses, files and process ids. ``held`` is what it keeps open until its next try."""

    socket: Path
    port: int
    home: Path
    marks: Path
    open: Path
    pids: dict[str, int]
    runs: dict[str, dict[str, Any]]
    monitors_name: str
    server_uid: int
    victims_runtime: Path
    address: str = ""
    held: list[Any] = field(default_factory=list)

    def connect(self, **named: Any) -> Any:
        """A connection by the attacker's own door."""
        return trigmon.connect(self.address, **{"application": "attack", "run_id": ""} | named)

    def let_go(self) -> None:
        """Closes what the last try held."""
        for one in self.held:
            (getattr(one, "drop", None) or one.close)()
        self.held.clear()


class _As(Daemon):
    """``trigmon`` as another user, from where that user can read it."""

    def __init__(self, home, code, user, name="QM1", **named):
        super().__init__(home, name, **named)
        self.code, self.user = code, user

    def launch(self, *arguments, **popen):
        argv = [self.code.python, "-m", "trigmon", "run", "--no-monitor", *arguments]
        with self.log.open("ab") as log:
            more = self.user.popen() | {"env": self.code.variables(self.env), "cwd": "/"}
            self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **more | popen)
        return self


class Code:
    """An interpreter and this trigmon where every user can read them: a copy where the checkout is barred."""

    def __init__(self, home: Path, user: User) -> None:
        self.python, self._path = sys.executable, ""
        if self._works(user):
            return
        self._path = str(home / "code")
        self._copy(home / "code")
        named = f"python{sys.version_info.major}.{sys.version_info.minor}"
        found = [os.path.realpath(sys.executable), shutil.which(named, path="/usr/local/bin:/usr/bin")]
        for self.python in filter(None, found):
            if self._works(user):
                return
        pytest.skip(f"another user can run no {named} of this machine")

    def variables(self, environment: dict[str, str]) -> dict[str, str]:
        """The environment in which it is found."""
        found = {"PYTHONPATH": self._path} if self._path else {}
        return environment | found | {"PYTHONDONTWRITEBYTECODE": "1"}

    def _works(self, user: User) -> bool:
        argv = [self.python, "-c", "import trigmon.server.daemon, trigmon.monitor.monitor, trigmon.cli.main"]
        try:
            run = subprocess.run(
                argv, env=self.variables({}), cwd="/", capture_output=True, check=False, **user.popen()
            )
        except OSError:
            return False
        return run.returncode == 0

    def _copy(self, target: Path) -> None:
        target.mkdir()
        package = Path(trigmon.__file__).parent
        shutil.copytree(package, target / "trigmon")
        for name in ("config", "process_defs", "systemd"):
            if (package.parent / name).is_dir():
                shutil.copytree(package.parent / name, target / name)
        for name in _required("trigmon", {"trigmon"}):
            for file in importlib.metadata.files(name) or []:
                to = target / file
                if ".." not in file.parts and (source := Path(str(file.locate()))).is_file() and not to.exists():
                    to.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(source, to)  # with its time: what was compiled of it still fits


def _required(name: str, seen: set[str]) -> set[str]:
    """The distributions that one needs without its extras."""
    for line in importlib.metadata.requires(name) or []:
        wanted, _, condition = line.partition(";")
        found = wanted.split("[")[0].split("(")[0].rstrip("<>=!~ .0123456789,*").strip()
        if "extra ==" not in condition and found not in seen:
            try:
                importlib.metadata.distribution(found)
            except importlib.metadata.PackageNotFoundError:
                continue
            seen.add(found)
            _required(found, seen)
    return seen


class Stage:
    """Everything that runs, and root's own connection, which sees all of it."""

    def __init__(self) -> None:
        numbers = free_numbers(6)
        self.group = numbers[0]
        self.server = User(numbers[1], (self.group,))
        self.monitors = User(numbers[2], (self.group,))
        self.member, self.stranger = User(numbers[3], (self.group,)), User(numbers[4])
        self.other = User(numbers[5], (self.group,))
        self.others_runtime = Path(f"/tmp/trigmon-{self.other.uid}")
        self.actors: dict[str, Actor] = {}
        self.daemon: Any = None
        self.qm: Any = None
        self.monitor: subprocess.Popen[bytes] | None = None
        self.home = Path(tempfile.mkdtemp(prefix="ta-", dir="/tmp"))
        self.home.chmod(0o755)
        self.sleeper = self.home / "bin" / "sleeper"
        self._directories()
        try:
            self._begin()
        except BaseException:
            self.end()
            raise

    def _begin(self) -> None:
        self.code = Code(self.home, self.stranger)
        settings = {"server.socket_group": self.group, "server.tcp": "127.0.0.1:0"}
        settings |= {"server.monitors": self.monitors.uid, "server.max_connections": CONNECTIONS}
        self.daemon = _As(self.home / "q", self.code, self.server, settings=settings).start()
        self.port = int(self.daemon.wait_for_event("ready")["listens"][1].rpartition(":")[2])
        self.qm = self.daemon.connect()
        self._objects()
        self.start_monitor()
        self._programs()

    def _directories(self) -> None:
        owners = {"q": (self.server.uid, 0o755), "m": (self.monitors.uid, 0o711), "secrets": (self.monitors.uid, 0o700)}
        owners |= {"marks": (0, 0o1777), "open": (0, 0o1777), "bin": (0, 0o755), "notes": (self.monitors.uid, 0o755)}
        for name, (owner, mode) in owners.items():
            (self.home / name).mkdir()
            os.chown(self.home / name, owner, owner)
            (self.home / name).chmod(mode)
        (self.home / "users").write_text(f"{TARGET}\n")
        secret = self.home / "secrets" / "db"
        secret.write_text(SECRET)
        secret.chmod(0o600)
        os.chown(secret, self.monitors.uid, self.monitors.uid)
        scripts = {"note": f'printf "%s|" "$@" >> {self.home}/notes/seen', "sleeper": "exec sleep 600"}
        for name, text in scripts.items():
            program = self.home / "bin" / name
            program.write_text(f"#!/bin/sh\n{text}\n")
            program.chmod(0o755)

    def _objects(self) -> None:
        self.qm.call(Alter(object_type="QMGR", name="QM1", attributes={"dead_letter_q_name": DLQ}))
        for name in ("PUBLIC.Q", "SPARE.Q", "VICTIM.Q"):
            define(self.qm, name)
        self.qm.put("PUBLIC.Q", b"a message of somebody's")
        define(self.qm, "TO.PUBLIC", "QALIAS", base_q_name="PUBLIC.Q")
        define(self.qm, "TO.INITQ", "QALIAS", base_q_name=INITQ)
        define(self.qm, "TO.REMOTE", "QREMOTE", remote_q_name=INITQ, remote_q_mgr_name="QM1")
        self.process("HELLO", f"{self.home}/bin/note {{trigdata}} {{queue}}")
        self.process("OTHER", f"/usr/bin/touch {self.home}/marks/OTHER.{{trigdata}}")
        self.process("SLEEPER", str(self.sleeper), secrets="db")
        self.process("LEDGER", "/bin/true", run_as=TARGET)
        self.process("LIMITED", str(self.sleeper), time_limit_s=1)
        self.process("AS", str(self.sleeper), run_as=TARGET, secrets="db")

    def process(self, name: str, appl_id: str, **more: Any) -> None:
        """A process NAME.P and a queue NAME whose every message starts it."""
        define(self.qm, f"{name}.P", "PROCESS", appl_id=appl_id, retry=0, breaker=0, instances=100, **more)
        armed = {"trigger_control": "on", "trigger_type": "every", "initiation_q_name": INITQ}
        define(self.qm, name, process_name=f"{name}.P", **armed)

    def _programs(self) -> None:
        """Starts what runs as long as the attacks do, and one program that ends."""
        self.runs = {}
        for name, state in (("HELLO", "exited"), ("SLEEPER", "started"), ("AS", "started")):
            self.qm.put(name, b"go")
            over = {state, "failed", "unknown", "exited"}
            (run,) = until(lambda name=name, over=over: [r for s in over for r in self.runs_of(name, s)])
            assert run["state"] == state, run
            self.runs[name] = run

    # -- the monitor ----------------------------------------------------------------------------------------

    def start_monitor(self) -> None:
        """Starts the monitor with the rights that RUNAS takes, and waits until it serves."""
        who = ["setpriv", f"--reuid={self.monitors.uid}", f"--regid={self.monitors.uid}", f"--groups={self.group}"]
        who += [f"--inh-caps={_CAPABILITIES}", f"--ambient-caps={_CAPABILITIES}"]
        argv = [*who, self.code.python, "-m", "trigmon", "--qmgr", self.daemon.address, "monitor"]
        kept = {key: value for key, value in os.environ.items() if not key.startswith("TRIGMON_")}
        given = {"RUN_AS_FILE": self.home / "users", "SECRETS_DIRECTORY": self.home / "secrets"}
        given |= {"CLASS_ARCHIVES": "false", "MAX_RUNS": 0}
        ours = {f"TRIGMON_MONITOR_{name}": str(value) for name, value in given.items()}
        with (self.home / "monitor.log").open("ab") as log:
            self.monitor = subprocess.Popen(
                [*argv, "--data", str(self.home / "m")],
                env=self.code.variables(kept | ours | {"HOME": "/", "TRIGMON_LOG_FORMAT": "json"}),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                umask=0o022,
            )
        until(lambda: self.row(INITQ)["open_input_count"] or self.monitor_said(ended=True))

    def monitor_said(self, *, ended: bool = False) -> str:
        """The monitor's log. Raises AssertionError where it has ended."""
        log = (self.home / "monitor.log").read_text()
        assert self.monitor is not None and self.monitor.poll() is None, log
        return "" if ended else log

    def kill_monitor(self) -> None:
        """Ends the monitor as a crash would."""
        assert self.monitor is not None
        self.monitor.kill()
        self.monitor.wait()

    def retry_dead_letters(self) -> None:
        """Returns every dead letter to where it says it came from, as an operator does."""
        reply = self.qm.call(RetryDeadLetters())
        while reply.more:
            reply = self.qm.call(RetryDeadLetters(after=reply.after))

    def settle(self) -> None:
        """Waits until all trigger messages are worked off and nothing that was to start is still to."""
        before = {row["run_id"] for row in self.runs_of("HELLO", "exited")}
        self.qm.put("HELLO", b"a good one")
        try:
            until(lambda: {row["run_id"] for row in self.runs_of("HELLO", "exited")} - before)
            until(lambda: not self.row(INITQ)["current_q_depth"])
            until(lambda: not self.under_way())
        except AssertionError:
            said = [(row["q_name"], row["process_name"], row["state"], row["why"]) for row in self.under_way()]
            raise AssertionError(f"{said}\n{self.monitor_said()[-8000:]}") from None

    def under_way(self) -> list[dict[str, Any]]:
        """The runs that are still to start or to end, but for those that last as long as the attacks."""
        found = [row for state in BUSY for row in self.qm.call(Runs(where={"state": state})).rows]
        lasting = ([str(self.sleeper)], [])  # what the attacks are about, and what only claims to be a program
        return [row for row in found if row["state"] in ("held", "due") or row["argv"][:1] not in lasting]

    # -- what root sees ---------------------------------------------------------------------------------------

    def row(self, name: str, object_type: str = "queue") -> dict[str, Any]:
        """An object as it is now."""
        (row,) = self.qm.call(Display(object_type=object_type, name=name)).rows
        return row

    def all_runs(self) -> list[dict[str, Any]]:
        """The newest runs of the ledger."""
        return self.qm.call(Runs(limit=256)).rows

    def runs_of(self, name: str, state: str) -> list[dict[str, Any]]:
        """The runs of a queue in this state."""
        return self.qm.call(Runs(where={"q_name": name, "state": state})).rows

    def state(self) -> list[Any]:
        """All that a call may change: objects, depths, pauses, runs."""
        rows = [*self.qm.call(Display(object_type="queue")).rows, *self.qm.call(Display(object_type="PROCESS")).rows]
        rows += self.qm.call(Display(object_type="QMGR")).rows
        said = [{name: value for name, value in row.items() if name not in _VOLATILE} for row in rows]
        return [said, self.qm.call(Pauses()).rows, {row["run_id"]: row["state"] for row in self.all_runs()}]

    def mark(self, name: str) -> bool:
        """Whether a program of the monitor's, or of RUNAS, has left this mark."""
        owners = (self.monitors.uid, 65534)
        mark = self.home / "marks" / name
        return mark.exists() and mark.stat().st_uid in owners

    def is_served(self) -> bool:
        """Whether another member comes in, puts and gets."""
        how, said = self.actors["other"].ask("good client", timeout_s=20)
        return (how, said) == ("did", b"good")

    # -- attackers --------------------------------------------------------------------------------------------

    def cast(self, work: dict[str, Any]) -> None:
        """Makes the attackers' processes, which know what is there by now."""
        packages(["trigmon.mq", "trigmon.client", "trigmon.wire"])
        place = Place(
            socket=self.daemon.socket,
            port=self.port,
            home=self.home,
            marks=self.home / "marks",
            open=self.home / "open",
            pids=self.pids(),
            runs=self.runs,
            monitors_name=str(self.runs["AS"]["monitor"]),
            server_uid=self.server.uid,
            victims_runtime=self.others_runtime,
        )
        local, tcp = self.daemon.address, f"tcp://127.0.0.1:{self.port}/QM1?user={self.server.uid}"
        cast = {STRANGER: (self.stranger, local), MEMBER: (self.member, local), TCP: (self.stranger, tcp)}
        cast |= {MONITOR: (self.monitors, local), "other": (self.other, local)}
        for role, (user, address) in cast.items():
            place.address = address
            self.actors[role] = Actor(user, place, work)

    def pids(self) -> dict[str, int]:
        """The processes that are attacked, by name."""
        assert self.daemon.process is not None and self.monitor is not None
        job = self.runs["SLEEPER"]["pid"]
        keeper = parent_of(job)
        found = {"daemon": self.daemon.process.pid, "monitor": self.monitor.pid, "keeper": keeper}
        return found | {"program": job, "RUNAS program": self.runs["AS"]["pid"]}

    def end(self) -> None:
        """Ends everything, and removes the files."""
        if self.qm is not None:
            self.qm.drop()
        for actor in self.actors.values():
            actor.end()
        if self.daemon is not None and self.daemon.process.poll() is None:
            with self.daemon.connect() as qm:
                rows = qm.call(Runs()).rows
            for run in rows:
                if run.get("argv", [])[:1] == [str(self.sleeper)] and run["state"] in BUSY:
                    os.killpg(run["pid"], signal.SIGKILL)
        if self.monitor is not None and self.monitor.poll() is None:
            self.kill_monitor()  # its keeper has nothing to keep, and ends by itself
        if self.daemon is not None:
            self.daemon.end()
        for victim in getattr(self, "victims", []):
            victim.kill()
        shutil.rmtree(self.others_runtime, ignore_errors=True)
        shutil.rmtree(self.home, ignore_errors=True)

"""The Spark Connect servers that monitors keep: their command line, their files, and whether they run.

In the data directory, ``spark/servers/ID.json`` describes a server (readable for its owner only: it holds the token).
``spark/servers/ID.properties`` are settings that only Spark may read, ``spark/servers/ID.python`` is what it starts as
Python (:mod:`trigmon.launch.spark.warm.worker_python`), and ``spark/servers/ID`` is its directory as a
keeper's helper (:mod:`trigmon.keeper.run_directory`), with its output.
``spark/sessions/RUN.json`` is the session of a run. The file stays until the session has been released, so that the
next monitor releases the sessions of runs that ended meanwhile.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import socket
import sys
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from trigmon.keeper import run_directory
from trigmon.launch.launch_plan import LaunchPlan, Session
from trigmon.launch.spark import secret, sockets
from trigmon.launch.spark.cold import web_page
from trigmon.launch.spark.cold.java import find_java
from trigmon.launch.spark.cold.submit import spark_home
from trigmon.launch.spark.conf_options import conf_options
from trigmon.launch.spark.warm import worker_python
from trigmon.log import logger
from trigmon.rules.runs import spark_ports

log = logger()
MAIN_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
FAIR = """<?xml version="1.0"?>
<allocations><pool name="default"><schedulingMode>FAIR</schedulingMode></pool></allocations>
"""
"""The scheduler pool of all jobs: without it, Spark runs a server's jobs one after the other."""
_OF_JAVA = "SPARK_SUBMIT_OPTS"
GIVES_BACK = "-XX:G1PeriodicGCInterval=60000 -XX:MaxHeapFreeRatio=40"
"""Options of Java by which a server without a run gives back memory: it collects garbage after a minute without."""
_PROPERTIES, _PYTHON = ".properties", ".python"
_ENDS_AUTHORITY = re.compile("[/;?#]")
_SERVER = re.compile(r"(\[[0-9A-Fa-f:.]*\]|[\w.-]*)(:[0-9]+$)?")
_SEPARATORS = re.compile("[/;?#@&:=]")
_OPEN_WORDS = ("token", "user_id", "session_id", "user_agent", "use_ssl", "true", "false")
_SHORTEST_SECRET = 4
"""A shorter word is part of other words too, which would become unreadable without it."""
_T = TypeVar("_T")
_NAMESPACE = uuid.UUID("6b0f1c5e-2f5b-4b0f-9a43-31a2c6c2d9f4")


class Serving(msgspec.Struct, frozen=True, kw_only=True):
    """The settings ``connect``: how many warm runs at a time, and the settings of the servers.

    ``memory`` is a server's heap in Spark's words, ``rss_limit`` bytes, ``max_age_s`` and ``deadline_s`` seconds; 0: no
    limit.
    """

    runs: int = 4
    master: str = "local[*]"
    memory: str = "1g"
    conf: tuple[str, ...] = ()
    rss_limit: int = 4 << 30
    max_age_s: float = 86_400.0
    deadline_s: float = 15.0


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """One server: its monitor's name, its ports on the loopback interface, and the settings it was started with.

    ``page_key`` is the key of its page ("": the page asks for none).
    """

    server_id: str
    monitor: str
    master: str
    port: int
    ui_port: int
    token: str
    made_ms: int
    memory: str = ""
    conf: tuple[str, ...] = ()
    page_key: str = ""

    @property
    def url(self) -> str:
        """The address for clients. By name, not by number: only with localhost gRPC needs no certificate."""
        return f"sc://localhost:{self.port}/;token={self.token}"

    @property
    def ui(self) -> str:
        """The address of its web server, for its progress."""
        return f"http://127.0.0.1:{self.ui_port}"

    def is_as(self, serving: Serving) -> bool:
        """Returns whether the server has the settings of ``serving``."""
        return (self.memory, self.conf) == (serving.memory, serving.conf)


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """The session of a run: of which monitor, on which server ("": on the external server ``remote``)."""

    run_id: str
    monitor: str
    user_id: str
    session_id: str
    server_id: str = ""
    remote: str = ""


def session_of(q_mgr_name: str, run_id: str) -> str:
    """Returns the session id of a run. It is computed from the run, so that it can be released without a record."""
    return str(uuid.uuid5(_NAMESPACE, f"{q_mgr_name}/{run_id}"))


def remote_of(url: str, user_id: str, session_id: str) -> str:
    """Returns SPARK_REMOTE of a run: the server's address with its session, and ``user_id`` where it names none."""
    address, _, parameters = url.partition("/;")
    kept = [text for text in parameters.rstrip("/").split(";") if text and not text.startswith("session_id=")]
    if not any(text.startswith("user_id=") for text in kept):
        kept.append(f"user_id={user_id}")
    return f"{address.rstrip('/')}/;{';'.join([*kept, f'session_id={session_id}'])}"


def user_of(url: str, user_id: str) -> str:
    """Returns the user of a session: the one in the address, else ``user_id``."""
    named = [text for text in url.partition("/;")[2].split(";") if text.startswith("user_id=")]
    return named[0].partition("=")[2] if named else user_id


def is_elsewhere(master: str) -> bool:
    """Returns whether this is the address of an external server."""
    return master.startswith("sc://")


def shown(url: str) -> str:
    """Returns the host and port of an external server, for logs: everything else in its address may be a secret.

    That holds too for an address that Spark cannot read, which is the one that errors quote most.
    """
    scheme, mark, rest = url.partition("://")
    authority = _ENDS_AUTHORITY.split(rest, maxsplit=1)[0].rpartition("@")[2]
    server = _SERVER.match(authority)
    return scheme + mark + (server[0] if server else "")


def redacted(why: str, url: str) -> str:
    """Returns a client's error about an external server without the secrets that it quotes from the address."""
    open_words = {*_SEPARATORS.split(shown(url)), *_OPEN_WORDS}
    secrets_of = {word for word in _SEPARATORS.split(url) if len(word) >= _SHORTEST_SECRET and word not in open_words}
    for word in sorted(secrets_of, key=len, reverse=True):
        why = why.replace(word, "...")
    return why


def completed(plan: LaunchPlan, remote: str) -> LaunchPlan:
    """Returns the plan with the variables of its session on the server ``remote``."""
    session = plan.session
    assert session is not None
    names = ("name", "conf", "py_files", "files", "archives", "jars")
    content = msgspec.json.encode({name: value for name in names if (value := getattr(session, name))}).decode()
    variables = {"SPARK_REMOTE": remote, "TRIGMON_SPARK": content}
    return msgspec.structs.replace(plan, environment=plan.environment | variables)


# -- servers of the monitor ---------------------------------------------------------------------------------


def made(monitor: str, session: Session, serving: Serving) -> Server:
    """Returns a new server, not yet started; its ports are free now."""
    with socket.socket() as one, socket.socket() as other:
        for each in (one, other):
            each.bind(("127.0.0.1", 0))
        return Server(
            server_id=f"connect-{secrets.token_hex(6)}",
            monitor=monitor,
            master=session.master or serving.master,
            port=one.getsockname()[1],
            ui_port=other.getsockname()[1],
            token=secrets.token_hex(24),
            made_ms=time.time_ns() // 1_000_000,
            memory=serving.memory,
            conf=serving.conf,
            page_key=web_page.new_key(),
        )


def command(server: Server, spark_submit: str, fair: Path, more: Sequence[str] = ()) -> list[str]:
    """Returns the words that start a server; ``fair`` is the file of :data:`FAIR`, ``more`` are further options.

    No secret is among them: every user of this machine may read a command line.
    """
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(server.port),
        "spark.ui.port": str(server.ui_port),
        **spark_ports.closing(server.master, {}),
        "spark.port.maxRetries": "0",  # the monitor knows only this port
        "spark.log.level": "WARN",
        "spark.ui.showConsoleProgress": "false",
        # A run does not see the Python packages and files of another run.
        "spark.sql.artifact.isolation.enabled": "true",
        # Ends a query whose client has vanished, also where no monitor runs that would notice.
        "spark.connect.execute.manager.detachedTimeout": "60s",
        # A long query of one run does not delay another run's: cores are shared in turns.
        "spark.scheduler.mode": "FAIR",
        "spark.scheduler.allocation.file": fair.absolute().as_uri(),
        # A user who may read the page must not end jobs.
        "spark.ui.killEnabled": "false",
        "spark.ui.retainedJobs": "100",
        "spark.ui.retainedStages": "200",
        "spark.sql.ui.retainedExecutions": "100",
    }
    settings |= dict(setting.split("=", 1) for setting in server.conf)
    words = [spark_submit, "--master", server.master, "--driver-memory", server.memory, "--name", "trigmon"]
    return [*words, "--class", MAIN_CLASS, *more, *conf_options(settings), "spark-internal"]


def planned(server: Server, data_directory: Path, address: str) -> LaunchPlan:
    """Returns the plan of a server and writes its files. ``address`` is the queue manager's, for reads of queues.

    Raises LaunchError, and OSError when a file cannot be written.
    """
    conf = dict(setting.split("=", 1) for setting in server.conf)
    if opened := spark_ports.opened(conf):
        log.warning("other users can connect to a Spark Connect server", server=server.server_id, connect_conf=opened)
    home = spark_home(os.environ)
    java = find_java(data_directory / "java")
    environment = {
        "SPARK_HOME": str(home),
        "JAVA_HOME": str(java.home),
        "SPARK_CONNECT_AUTHENTICATE_TOKEN": server.token,
        spark_ports.PAGE_ADDRESS: spark_ports.LOOPBACK,
        "SPARK_NO_DAEMONIZE": "1",
        _OF_JAVA: java_options(os.environ),
        "PYSPARK_PYTHON": worker_python.written(
            data_directory / "spark" / "servers" / f"{server.server_id}{_PYTHON}",
            server.server_id,
            os.environ.get("PYSPARK_PYTHON", sys.executable),
            server.master,
        ),
        "PYTHONPATH": os.pathsep.join(path for path in (os.environ.get("PYTHONPATH", ""), _source_directory()) if path),
        "TRIGMON_QMGR": address,
        "TRIGMON_RUN": "",
    }
    fair = data_directory / "spark" / "fair.xml"
    fair.write_text(FAIR)
    properties = data_directory / "spark" / "servers" / f"{server.server_id}{_PROPERTIES}"
    web_page.write(properties, server.page_key)
    more = web_page.options(properties, home, os.environ)
    options, variables = secret.made(server.master, conf)
    more += options
    if spark_ports.is_local(server.master):
        more += sockets.options(data_directory / "spark" / "s", conf)
    argv = command(server, str(home / "bin" / "spark-submit"), fair, more)
    return LaunchPlan(argv=argv, environment=environment | variables, working_directory=str(data_directory))


def java_options(environment: Mapping[str, str]) -> str:
    """Returns the options of a server's Java; those of the environment come last, and so count."""
    return f"{GIVES_BACK} {environment.get(_OF_JAVA, '')}".strip()


def _source_directory() -> str:
    """Returns the directory of the module by which Spark finds the data source; "" where trigmon is installed."""
    found = Path(__file__).parents[3] / "spark" / "found"
    return str(found) if found.is_dir() else ""


# -- files of servers ---------------------------------------------------------------------------------------


class Shelf:
    """The files of the servers and sessions in one data directory."""

    def __init__(self, data_directory: Path) -> None:
        self.servers = data_directory / "spark" / "servers"
        self.sessions = data_directory / "spark" / "sessions"

    def directory(self, server_id: str) -> Path:
        """Returns a server's directory."""
        return self.servers / server_id

    def put_server(self, server: Server) -> None:
        """Records a server that is about to be started. Raises OSError."""
        _write(self.servers / f"{server.server_id}.json", msgspec.json.encode(server))

    def put_session(self, given: Given) -> None:
        """Records a session that is about to be used. Raises OSError."""
        _write(self.sessions / f"{given.run_id}.json", msgspec.json.encode(given))

    def drop_session(self, run_id: str) -> None:
        """Removes the record of a session that has been released."""
        (self.sessions / f"{run_id}.json").unlink(missing_ok=True)

    def drop_server(self, server_id: str) -> None:
        """Removes the record and the directory of a server that has ended."""
        for suffix in (".json", _PROPERTIES, _PYTHON):
            (self.servers / f"{server_id}{suffix}").unlink(missing_ok=True)
        shutil.rmtree(self.directory(server_id), ignore_errors=True)

    def session(self, run_id: str) -> Given | None:
        """Returns the session of a run, None when it has none."""
        return _read(self.sessions / f"{run_id}.json", Given)

    def server(self, server_id: str) -> Server | None:
        """Returns a server by its id."""
        return _read(self.servers / f"{server_id}.json", Server)

    def all_sessions(self) -> Iterator[Given]:
        """Yields every recorded session."""
        yield from (found for path in _files(self.sessions) if (found := _read(path, Given)))

    def all_servers(self) -> Iterator[Server]:
        """Yields every recorded server."""
        yield from (found for path in _files(self.servers) if (found := _read(path, Server)))


def process_of(directory: Path) -> tuple[int, int] | None:
    """Returns process id and pidfd of the server of this directory; None when it does not run, or not yet."""
    claim = run_directory.read(directory)
    return run_directory.open_program(claim, "") if claim and claim.get("pid") else None


def has_ended(directory: Path) -> bool:
    """Returns whether the server's keeper has recorded its end, or that it did not start."""
    return run_directory.read_exit(directory) is not None


def memory_of_session(session: int) -> int:
    """Returns bytes of memory in use by the processes of a session: a server's Java, and the Pythons it has.

    Memory that forks share counts once: each has its part of it (PSS, proc(5)).
    """
    total = 0
    for pid in run_directory.all_processes():
        with suppress(OSError, ValueError, IndexError):
            fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
            if int(fields[3]) == session:
                total += _part_of(pid) or int(fields[21]) * os.sysconf("SC_PAGE_SIZE")
    return total


def _part_of(pid: int) -> int:
    """Returns bytes of memory of a process, what it shares in parts; 0 where they cannot be read."""
    with suppress(OSError), Path(f"/proc/{pid}/smaps_rollup").open("rb") as file:
        for line in file:
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) << 10
    return 0


def listens(port: int) -> bool:
    """Returns whether a process accepts connections at the port of the loopback interface."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1.0):
        return True
    return False


def _files(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.json")) if directory.is_dir() else []


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, data)
    finally:
        os.close(descriptor)
    beside.replace(path)


def _read(path: Path, kind: type[_T]) -> _T | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.DecodeError):
        return None

"""The Spark Connect servers that monitors keep: what one is told, what is written down of it, whether it is there.

``spark/servers/ID.json`` in the data directory says what a server is (for its owner's eyes: the token is in it),
``spark/servers/ID.properties`` is what Spark alone may read of it, and ``spark/servers/ID`` is its directory as a
keeper's helper (:mod:`trigmon.keeper.run_directory`), with what it wrote.
``spark/sessions/RUN.json`` says which session a run was given; it is there until that session has been released, so
that whichever monitor comes next releases those of runs that ended meanwhile.
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
from collections.abc import Iterator, Sequence
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
from trigmon.log import logger
from trigmon.rules.runs import spark_ports

log = logger()
MAIN_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
FAIR = """<?xml version="1.0"?>
<allocations><pool name="default"><schedulingMode>FAIR</schedulingMode></pool></allocations>
"""
"""How jobs share a server's cores: without it, the pool that all are in takes them one after the other."""
_PROPERTIES = ".properties"
_ENDS_AUTHORITY = re.compile("[/;?#]")
_SERVER = re.compile(r"(\[[0-9A-Fa-f:.]*\]|[\w.-]*)(:[0-9]+$)?")
_SEPARATORS = re.compile("[/;?#@&:=]")
_OPEN_WORDS = ("token", "user_id", "session_id", "user_agent", "use_ssl", "true", "false")
_SHORTEST_SECRET = 4
"""A shorter word stands in other words too, which nobody could read without it."""
_T = TypeVar("_T")
_NAMESPACE = uuid.UUID("6b0f1c5e-2f5b-4b0f-9a43-31a2c6c2d9f4")


class Serving(msgspec.Struct, frozen=True, kw_only=True):
    """The settings ``connect``: how many warm runs at a time, and of what kind the servers are.

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
    """One server: whose (a monitor's name), where it listens on the loopback interface, and what it was made of.

    ``page_key`` is what its page asks for ("": it asks nobody).
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
        """What a client connects to. Not the number of the interface: only by this name gRPC needs no certificate."""
        return f"sc://localhost:{self.port}/;token={self.token}"

    @property
    def ui(self) -> str:
        """Its web server, for its progress."""
        return f"http://127.0.0.1:{self.ui_port}"

    def is_as(self, serving: Serving) -> bool:
        """Whether it would be made the same today."""
        return (self.memory, self.conf) == (serving.memory, serving.conf)


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """The session a run was given: of which monitor, on which server ("": ``remote`` is somebody else's)."""

    run_id: str
    monitor: str
    user_id: str
    session_id: str
    server_id: str = ""
    remote: str = ""


def session_of(q_mgr_name: str, run_id: str) -> str:
    """The session id of a run: the same whoever asks, so that nothing has to be known to release it."""
    return str(uuid.uuid5(_NAMESPACE, f"{q_mgr_name}/{run_id}"))


def remote_of(url: str, user_id: str, session_id: str) -> str:
    """SPARK_REMOTE of a run: the server's address with its session; who it says it is stays, where it does."""
    address, _, parameters = url.partition("/;")
    said = [text for text in parameters.rstrip("/").split(";") if text and not text.startswith("session_id=")]
    if not any(text.startswith("user_id=") for text in said):
        said.append(f"user_id={user_id}")
    return f"{address.rstrip('/')}/;{';'.join([*said, f'session_id={session_id}'])}"


def user_of(url: str, user_id: str) -> str:
    """Whose session it is: the address may say so itself."""
    named = [text for text in url.partition("/;")[2].split(";") if text.startswith("user_id=")]
    return named[0].partition("=")[2] if named else user_id


def is_elsewhere(master: str) -> bool:
    """Whether this is the address of somebody else's server."""
    return master.startswith("sc://")


def shown(url: str) -> str:
    """A server elsewhere as it is told of: its host and port alone, for all else may be a secret.

    That holds for an address too that Spark cannot read: such a one is told of most.
    """
    scheme, mark, rest = url.partition("://")
    authority = _ENDS_AUTHORITY.split(rest, maxsplit=1)[0].rpartition("@")[2]
    server = _SERVER.match(authority)
    return scheme + mark + (server[0] if server else "")


def told(why: str, url: str) -> str:
    """What a client says of a server elsewhere, as it is told of: it quotes what it cannot read of an address."""
    open_words = {*_SEPARATORS.split(shown(url)), *_OPEN_WORDS}
    secrets_of = {word for word in _SEPARATORS.split(url) if len(word) >= _SHORTEST_SECRET and word not in open_words}
    for word in sorted(secrets_of, key=len, reverse=True):
        why = why.replace(word, "...")
    return why


def completed(plan: LaunchPlan, remote: str) -> LaunchPlan:
    """The plan of a run whose session is known."""
    session = plan.session
    assert session is not None
    names = ("name", "conf", "py_files", "files", "archives", "jars")
    said = msgspec.json.encode({name: value for name in names if (value := getattr(session, name))}).decode()
    return msgspec.structs.replace(plan, environment=plan.environment | {"SPARK_REMOTE": remote, "TRIGMON_SPARK": said})


# -- a server of our own ------------------------------------------------------------------------------------


def made(monitor: str, session: Session, serving: Serving) -> Server:
    """A new server, not yet started; its ports are free now."""
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
    """The words that start a server; ``fair`` is the file of :data:`FAIR`, ``more`` are further options.

    Its secrets are not among them: everybody on this machine may read these.
    """
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(server.port),
        "spark.ui.port": str(server.ui_port),
        **spark_ports.closing(server.master, {}),
        "spark.port.maxRetries": "0",  # another port than the one that was said would be nobody's
        "spark.log.level": "WARN",
        "spark.ui.showConsoleProgress": "false",
        # Python's packages and files of one run are not another's.
        "spark.sql.artifact.isolation.enabled": "true",
        # A query whose client has gone without a word, where no monitor is there to see it.
        "spark.connect.execute.manager.detachedTimeout": "60s",
        # One run's long query keeps no other's waiting: cores are shared by turns.
        "spark.scheduler.mode": "FAIR",
        "spark.scheduler.allocation.file": fair.absolute().as_uri(),
        # Whoever may look at it ends nobody's jobs.
        "spark.ui.killEnabled": "false",
        "spark.ui.retainedJobs": "100",
        "spark.ui.retainedStages": "200",
        "spark.sql.ui.retainedExecutions": "100",
    }
    settings |= dict(setting.split("=", 1) for setting in server.conf)
    words = [spark_submit, "--master", server.master, "--driver-memory", server.memory, "--name", "trigmon"]
    words += ["--class", MAIN_CLASS, *more]
    for name, value in settings.items():
        words += ["--conf", f"{name}={value}"]
    return [*words, "spark-internal"]


def planned(server: Server, data_directory: Path, address: str) -> LaunchPlan:
    """What is executed for a server. ``address`` is the queue manager's, for reads of queues.

    Raises LaunchError, and OSError when what it is to read cannot be written.
    """
    conf = dict(setting.split("=", 1) for setting in server.conf)
    if opened := spark_ports.opened(conf):
        log.warning("strangers may speak to a Spark Connect server", server=server.server_id, connect_conf=opened)
    home = spark_home(os.environ)
    java = find_java(data_directory / "java")
    environment = {
        "SPARK_HOME": str(home),
        "JAVA_HOME": str(java.home),
        "SPARK_CONNECT_AUTHENTICATE_TOKEN": server.token,
        spark_ports.PAGE_ADDRESS: spark_ports.LOOPBACK,
        "SPARK_NO_DAEMONIZE": "1",
        "PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", sys.executable),
        "PYTHONPATH": os.pathsep.join(path for path in (os.environ.get("PYTHONPATH", ""), _finds_the_source()) if path),
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


def _finds_the_source() -> str:
    """Where Spark finds the data source in a checkout; an installed trigmon has it at the top."""
    found = Path(__file__).parents[2] / "spark" / "found"
    return str(found) if found.is_dir() else ""


# -- what is written down -----------------------------------------------------------------------------------


class Shelf:
    """The files of the servers and sessions in one data directory."""

    def __init__(self, data_directory: Path) -> None:
        self.servers = data_directory / "spark" / "servers"
        self.sessions = data_directory / "spark" / "sessions"

    def directory(self, server_id: str) -> Path:
        """A server's directory."""
        return self.servers / server_id

    def put_server(self, server: Server) -> None:
        """Writes down a server that is about to be started. Raises OSError."""
        _write(self.servers / f"{server.server_id}.json", msgspec.json.encode(server))

    def put_session(self, given: Given) -> None:
        """Writes down a session that is about to be used. Raises OSError."""
        _write(self.sessions / f"{given.run_id}.json", msgspec.json.encode(given))

    def drop_session(self, run_id: str) -> None:
        """It has been released."""
        (self.sessions / f"{run_id}.json").unlink(missing_ok=True)

    def drop_server(self, server_id: str) -> None:
        """It has ended."""
        for suffix in (".json", _PROPERTIES):
            (self.servers / f"{server_id}{suffix}").unlink(missing_ok=True)
        shutil.rmtree(self.directory(server_id), ignore_errors=True)

    def session(self, run_id: str) -> Given | None:
        """The session of a run, None when it has none."""
        return _read(self.sessions / f"{run_id}.json", Given)

    def server(self, server_id: str) -> Server | None:
        """A server by its id."""
        return _read(self.servers / f"{server_id}.json", Server)

    def all_sessions(self) -> Iterator[Given]:
        """Every session that is written down."""
        yield from (found for path in _files(self.sessions) if (found := _read(path, Given)))

    def all_servers(self) -> Iterator[Server]:
        """Every server that is written down."""
        yield from (found for path in _files(self.servers) if (found := _read(path, Server)))


def process_of(directory: Path) -> tuple[int, int] | None:
    """Process id and pidfd of the server of this directory; None when it does not run, or not yet."""
    claim = run_directory.read(directory)
    return run_directory.open_program(claim, "") if claim and claim.get("pid") else None


def has_ended(directory: Path) -> bool:
    """Whether its keeper saw it end, or fail to start."""
    return run_directory.read_exit(directory) is not None


def rss_of_session(session: int) -> int:
    """Bytes of memory in use by the processes of a session: a server's Java, and the Pythons it has."""
    total = 0
    for pid in run_directory.all_processes():
        with suppress(OSError, ValueError, IndexError):
            fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
            if int(fields[3]) == session:
                total += int(fields[21])
    return total * os.sysconf("SC_PAGE_SIZE")


def listens(port: int) -> bool:
    """Whether somebody takes connections there."""
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

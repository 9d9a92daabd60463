"""The monitor's client of its keepers: finds a running keeper, starts a missing one, sends commands, reads reports.

The socket listens before the keeper runs. So commands for a new keeper wait in the socket, and the monitor does not
wait for its start.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from trigmon.keeper import protocol
from trigmon.launch import capabilities
from trigmon.launch.arguments import OF_ONE_RUN
from trigmon.launch.launch_plan import LaunchError, LaunchPlan
from trigmon.launch.users import account
from trigmon.log import is_the_journal, logger

log = logger()
_HELLO_S = 10.0
_NOT_SOONER_S = 1.0
# How long the parent of a keeper that has just died may take to start the next one. Meanwhile nothing is answered.
_COMES_BACK_S = 5.0


class KeeperGone(Exception):  # noqa: N818 - a state of the keeper, not a failure
    """The keeper's end of the connection has closed."""


class Keeper:
    """A connection to a keeper. ``runs`` are the runs it has reported. Any thread may send; one thread receives."""

    def __init__(self, name: str, link: socket.socket, launcher: str = protocol.PROCESS) -> None:
        self.name = name
        self._launcher = launcher
        self.runs: set[str] = set()
        self._link = link
        self._lines = protocol.Lines()
        self._unread: list[dict[str, Any]] = []

    def fileno(self) -> int:
        """Returns the descriptor of the connection, for polling."""
        return self._link.fileno()

    def start(
        self,
        run_id: str,
        plan: LaunchPlan,
        environment: Mapping[str, str],
        directory: Path,
        *,
        time_limit_s: float,
        grace_s: float,
        lease_s: float = 0,
    ) -> None:
        """Asks for a start; ``environment`` is all that the program gets. Raises KeeperGone.

        With ``lease_s`` it is a helper with a lease of so many seconds. A helper is always a process, never a unit.
        """
        self._send(
            "start",
            run=run_id,
            argv=plan.argv,
            environment=dict(environment),
            working_directory=plan.working_directory or str(Path.cwd()),
            directory=str(directory),
            time_limit_s=time_limit_s,
            grace_s=grace_s,
            launcher=protocol.PROCESS if lease_s else self._launcher,
            **_extras(plan, lease_s),
        )

    def stop(self, run_id: str, why: str, grace_s: float) -> None:
        """Asks for a run's end. Raises KeeperGone."""
        self._send("stop", run=run_id, why=why, grace_s=grace_s)

    def keep(self, run_id: str, lease_s: float) -> None:
        """Renews the lease of a helper, from now on. Raises KeeperGone."""
        self._send("keep", run=run_id, lease_s=lease_s)

    def warm(self, argv: list[str], environment: Mapping[str, str]) -> None:
        """Starts a fork server of Spark's jobs in the keeper, or keeps it. Raises KeeperGone."""
        self._send("warm", argv=argv, environment=dict(environment))

    def warm_interpreter(self, plan: LaunchPlan, environment: Mapping[str, str]) -> None:
        """Keeps the warm interpreter of runs with such plans, from now on. Raises KeeperGone."""
        directory = plan.working_directory or str(Path.cwd())
        self._send("warm", environment=dict(environment), working_directory=directory, interpreter=_interpreter(plan))

    def cool(self) -> None:
        """Ends the keeper's fork server of Spark's jobs; the processes that it forked run on. Raises KeeperGone."""
        self._send("cool")

    def close(self, *, for_good: bool = True) -> None:
        """Closes the connection. With ``for_good`` a keeper without runs ends then."""
        with suppress(KeeperGone):
            if for_good:
                self._send("bye")
        self._link.close()

    def wait_for_hello(self) -> None:
        """Waits until the keeper has reported its runs. Raises KeeperGone, and TimeoutError when it does not answer."""
        self._link.settimeout(_HELLO_S)
        try:
            while not any(message["say"] == "hello" for message in self._unread):
                self._receive()
        except TimeoutError:
            raise TimeoutError(f"the keeper {self.name} does not answer") from None
        except (OSError, KeeperGone):
            self._link.close()
            raise KeeperGone from None
        finally:
            if self._link.fileno() >= 0:
                self._link.settimeout(None)
        hello = next(message for message in self._unread if message["say"] == "hello")
        self.runs |= set(hello["runs"])

    def read_messages(self) -> list[dict[str, Any]]:
        """Returns the messages since the last call, oldest first, and updates ``runs``.

        Raises KeeperGone when the connection has closed and all messages were returned.
        """
        try:
            self._receive(socket.MSG_DONTWAIT)
        except BlockingIOError:
            pass
        except (OSError, KeeperGone):
            if not self._unread:
                self._link.close()
                raise KeeperGone from None
        messages, self._unread = self._unread, []
        for message in messages:
            if message["say"] == "started":
                self.runs.add(message["run"])
            elif message["say"] in ("ended", "failed"):
                self.runs.discard(message["run"])
        return messages

    def _receive(self, flags: int = 0) -> None:
        data = self._link.recv(1 << 16, flags)
        if not data:
            raise KeeperGone
        self._unread += self._lines.feed(data)

    def _send(self, word: str, **fields: Any) -> None:
        """Sends a command, with its fields as :mod:`trigmon.keeper.protocol` names them. Raises KeeperGone."""
        try:
            self._link.sendall(protocol.line(word, **fields), socket.MSG_NOSIGNAL)
        except OSError:
            raise KeeperGone from None


class Keepers:
    """The keepers in one directory of monitors: this monitor's own, and those whose runs it has taken over.

    ``launcher`` is what programs are started as. The runs' directory lies beside the monitors'.
    """

    def __init__(self, directory: Path, name: str, launcher: str = protocol.PROCESS) -> None:
        self.name = name
        self._directory = directory
        self.launcher = launcher
        self._known: dict[str, Keeper] = {}
        self._made_at = -_NOT_SOONER_S
        self._spawned: list[int] = []

    def all(self) -> list[Keeper]:
        """Returns the connected keepers."""
        return list(self._known.values())

    def own(self) -> Keeper:
        """Returns this monitor's keeper, started now when there is none. Raises OSError when that fails."""
        keeper = self.there(self.name)
        if keeper is None:
            if time.monotonic() < self._made_at + _NOT_SOONER_S:
                raise OSError(f"the keeper {self.name} ended as soon as it was started")
            self._made_at = time.monotonic()
            self._known[self.name] = keeper = self._made(self.name)
        return keeper

    def there(self, name: str) -> Keeper | None:
        """Returns the keeper of this name, None when it does not run. Raises OSError when it runs and does not answer.

        With programs as units of systemd, a keeper that has died is started again: it still learns how its runs ended.
        """
        if name in self._known or not name:
            return self._known.get(name)
        keeper = self._answering(name)
        if keeper is None and self.launcher == protocol.SYSTEMD:
            keeper = self._made(name)
            try:
                keeper.wait_for_hello()
            except KeeperGone:  # it ended of itself just now
                return None
        if keeper is None:
            return None
        self._known[name] = keeper
        return keeper

    def _answering(self, name: str) -> Keeper | None:
        """Returns the keeper behind the socket of this name; tries again while its parent starts a successor."""
        until = time.monotonic() + _COMES_BACK_S
        while (link := protocol.connected(self._directory, name)) is not None:
            keeper = Keeper(name, link, self.launcher)
            try:
                keeper.wait_for_hello()
            except KeeperGone:
                if time.monotonic() >= until:
                    raise TimeoutError(f"the keeper {name} goes as often as it comes") from None
                time.sleep(0.01)
            else:
                return keeper
        return None

    def lose(self, keeper: Keeper) -> None:
        """Forgets a keeper whose connection has closed."""
        self._known.pop(keeper.name, None)
        self._wait_for_spawned()

    def _wait_for_spawned(self) -> None:
        """Reaps the started keepers that have ended."""
        for pid in list(self._spawned):
            with suppress(ChildProcessError):
                if not os.waitpid(pid, os.WNOHANG)[0]:
                    continue
            self._spawned.remove(pid)

    def close(self, *, for_good: bool = True) -> None:
        """Closes all connections; not ``for_good``: another monitor will take over the runs."""
        for keeper in self.all():
            keeper.close(for_good=for_good)
        self._known.clear()
        self._wait_for_spawned()

    def _made(self, name: str) -> Keeper:
        argv = [sys.executable, "-m", "trigmon.keeper.main", name]
        if self.launcher == protocol.SYSTEMD:
            argv.append(str(self._directory.absolute().parent / "runs"))
        with protocol.listen(self._directory, name) as listener, _log_file(self._directory / f"{name}.log") as log_fd:
            with capabilities.inherited():
                pid = _spawn(argv, listener, log_fd)
            link = protocol.connected(self._directory, name)
        self._wait_for_spawned()
        self._spawned.append(pid)
        if link is None:
            raise OSError(f"the socket of the keeper {name} has gone")
        log.info("keeper started", keeper=name, pid=pid)
        return Keeper(name, link, self.launcher)


@contextmanager
def _log_file(path: Path) -> Iterator[int]:
    """Yields the descriptor of a keeper's log: the journal where this process writes to it, else a file.

    Where the file cannot be made it is /dev/full: every write fails, and the keeper writes to syslog.
    """
    if is_the_journal(sys.stderr):
        yield sys.stderr.fileno()
        return
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError as error:
        log.warning("the keeper has no log of its own", file=str(path), error=str(error))
        descriptor = os.open("/dev/full", os.O_WRONLY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _extras(plan: LaunchPlan, lease_s: float) -> dict[str, Any]:
    """Returns the optional fields of a start, as :mod:`trigmon.keeper.protocol` names them."""
    extras: dict[str, Any] = {"lease_s": lease_s} if lease_s else {}
    if plan.fork:
        extras["fork"] = plan.fork
    if plan.interpreter:
        extras["interpreter"] = _interpreter(plan)
    if plan.user:
        extras["user"] = _identity(plan.user)
    limits = {"memory_mib": plan.memory_limit_mib, "cpu_s": plan.cpu_limit_s, "open_files": plan.open_files_limit}
    if given := {name: limit for name, limit in limits.items() if limit}:
        extras["limits"] = given
    if plan.secrets:
        extras["secrets"] = plan.secrets
    return extras


def _interpreter(plan: LaunchPlan) -> dict[str, Any]:
    return {"argv": plan.interpreter, "modules": plan.modules, "without": OF_ONE_RUN}


def _identity(name: str) -> dict[str, Any]:
    try:
        user = account(name)
    except LaunchError:  # gone since the plan was made: the keeper refuses this, and the run fails with that
        return {"name": name, "uid": 0, "gid": 0, "groups": []}
    return {"name": name, "uid": user.uid, "gid": user.gid, "groups": user.groups}


def _spawn(argv: list[str], listener: socket.socket, log_fd: int) -> int:
    """Starts the process, in a session of its own, with ``log_fd`` as its standard error. Returns its process id."""
    return os.posix_spawn(
        sys.executable,
        argv,
        os.environ,
        file_actions=[
            (os.POSIX_SPAWN_DUP2, log_fd, 2),
            (os.POSIX_SPAWN_DUP2, listener.fileno(), protocol.LISTENER),
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        ],
        setsid=True,
        # Signals that a shell or nohup made the monitor ignore must work in programs.
        setsigdef=signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP},
        setsigmask=[],
    )

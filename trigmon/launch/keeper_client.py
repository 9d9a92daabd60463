"""A monitor's end of its keepers: finding the one that is there, starting the one that is not, speaking to either.

The socket listens before the keeper runs, so what is said to a new keeper waits for it, and nobody waits in turn.
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
from trigmon.launch.launch_plan import LaunchError, LaunchPlan
from trigmon.launch.users import account
from trigmon.log import is_the_journal, logger

log = logger()
_HELLO_S = 10.0
_NOT_SOONER_S = 1.0
# How long the parent of a keeper that has just died may take to make the next one, in which it answers nobody.
_COMES_BACK_S = 5.0


class KeeperGone(Exception):  # noqa: N818 - a state of the keeper, passed on to who knows what it kept
    """The keeper's end of the connection has closed."""


class Keeper:
    """A connection to a keeper. ``runs`` are those it keeps, as far as it has told; any thread may speak, one hears."""

    def __init__(self, name: str, link: socket.socket, launcher: str = protocol.PROCESS) -> None:
        self.name = name
        self._launcher = launcher
        self.runs: set[str] = set()
        self._link = link
        self._lines = protocol.Lines()
        self._heard: list[protocol.Said] = []

    def fileno(self) -> int:
        """For polling."""
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

        With ``lease_s`` it is a helper, which is kept for so long, and as a process whatever programs are started as.
        """
        self._say(
            protocol.line(
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
        )

    def stop(self, run_id: str, why: str, grace_s: float) -> None:
        """Asks for a run's end. Raises KeeperGone."""
        self._say(protocol.line("stop", run=run_id, why=why, grace_s=grace_s))

    def keep(self, run_id: str, lease_s: float) -> None:
        """Says that a helper is wanted for so long from now on. Raises KeeperGone."""
        self._say(protocol.line("keep", run=run_id, lease_s=lease_s))

    def warm(self, argv: list[str], environment: Mapping[str, str]) -> None:
        """Has it keep a fork server ready. Raises KeeperGone."""
        self._say(protocol.line("warm", argv=argv, environment=dict(environment)))

    def cool(self) -> None:
        """Has it keep no fork server any more; what that has made runs on. Raises KeeperGone."""
        self._say(protocol.line("cool"))

    def close(self, *, for_good: bool = True) -> None:
        """Goes; a keeper that keeps nothing ends then, unless this monitor comes again (not ``for_good``)."""
        with suppress(KeeperGone):
            if for_good:
                self._say(protocol.line("bye"))
        self._link.close()

    def wait_for_hello(self) -> None:
        """Returns when it has said what it keeps. Raises KeeperGone, and TimeoutError when it does not answer."""
        self._link.settimeout(_HELLO_S)
        try:
            while not any(said["say"] == "hello" for said in self._heard):
                self._feed(self._link.recv(1 << 16))
        except TimeoutError:
            raise TimeoutError(f"the keeper {self.name} does not answer") from None
        except (OSError, KeeperGone):
            self._link.close()
            raise KeeperGone from None
        finally:
            if self._link.fileno() >= 0:
                self._link.settimeout(None)
        hello = next(said for said in self._heard if said["say"] == "hello")
        self.runs |= set(hello["runs"])

    def hear(self) -> list[protocol.Said]:
        """What it has said since, oldest first; ``runs`` follows. Raises KeeperGone when all of that has been heard."""
        try:
            self._feed(self._link.recv(1 << 16, socket.MSG_DONTWAIT))
        except BlockingIOError:
            pass
        except (OSError, KeeperGone):
            if not self._heard:
                self._link.close()
                raise KeeperGone from None
        heard, self._heard = self._heard, []
        for said in heard:
            if said["say"] == "started":
                self.runs.add(said["run"])
            elif said["say"] in ("ended", "failed"):
                self.runs.discard(said["run"])
        return heard

    def _feed(self, data: bytes) -> None:
        if not data:
            raise KeeperGone
        self._heard += self._lines.feed(data)

    def _say(self, said: bytes) -> None:
        try:
            self._link.sendall(said, socket.MSG_NOSIGNAL)
        except OSError:
            raise KeeperGone from None


class Keepers:
    """The keepers of one monitors' directory: this monitor's own, and those whose runs it has taken over.

    ``launcher`` is what programs are started as. The runs' directory lies beside the monitors'.
    """

    def __init__(self, directory: Path, name: str, launcher: str = protocol.PROCESS) -> None:
        self.name = name
        self._directory = directory
        self._launcher = launcher
        self._known: dict[str, Keeper] = {}
        self._made_at = -_NOT_SOONER_S
        self._spawned: list[int] = []

    def all(self) -> list[Keeper]:
        """Those there is a connection to."""
        return list(self._known.values())

    def own(self) -> Keeper:
        """That of this monitor, started now when there is none. Raises OSError when it cannot be had now."""
        keeper = self.there(self.name)
        if keeper is None:
            if time.monotonic() < self._made_at + _NOT_SOONER_S:
                raise OSError(f"the keeper {self.name} ended as soon as it was started")
            self._made_at = time.monotonic()
            self._known[self.name] = keeper = self._made(self.name)
        return keeper

    def there(self, name: str) -> Keeper | None:
        """The keeper of this name, None when it does not run. Raises OSError when it runs and does not answer.

        Where systemd keeps the programs, one that has died is started again: it still learns how its runs ended.
        """
        if name in self._known or not name:
            return self._known.get(name)
        keeper = self._answering(name)
        if keeper is None and self._launcher == protocol.SYSTEMD:
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
        """The keeper behind the socket of this name. One that is killed now has a successor in a moment."""
        until = time.monotonic() + _COMES_BACK_S
        while (link := protocol.connected(self._directory, name)) is not None:
            keeper = Keeper(name, link, self._launcher)
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
        """One that has gone."""
        self._known.pop(keeper.name, None)
        self._wait_for_spawned()

    def _wait_for_spawned(self) -> None:
        """Those processes that have ended leave nothing of themselves here."""
        for pid in list(self._spawned):
            with suppress(ChildProcessError):
                if not os.waitpid(pid, os.WNOHANG)[0]:
                    continue
            self._spawned.remove(pid)

    def close(self, *, for_good: bool = True) -> None:
        """Ends all connections; not ``for_good``: another monitor comes and wants what is kept."""
        for keeper in self.all():
            keeper.close(for_good=for_good)
        self._known.clear()
        self._wait_for_spawned()

    def _made(self, name: str) -> Keeper:
        argv = [sys.executable, "-m", "trigmon.keeper.main", name]
        if self._launcher == protocol.SYSTEMD:
            argv.append(str(self._directory.absolute().parent / "runs"))
        with protocol.listen(self._directory, name) as listener, _log_file(self._directory / f"{name}.log") as said:
            with capabilities.inherited():
                pid = _spawn(argv, listener, said)
            link = protocol.connected(self._directory, name)
        self._wait_for_spawned()
        self._spawned.append(pid)
        if link is None:
            raise OSError(f"the socket of the keeper {name} has gone")
        log.info("keeper started", keeper=name, pid=pid)
        return Keeper(name, link, self._launcher)


@contextmanager
def _log_file(path: Path) -> Iterator[int]:
    """Where a keeper says what troubles it: the journal where that is what this process writes to, else a file.

    Where there is no room for a file, nothing that is written is taken, and the keeper tells syslog.
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
    """What few plans have, in the words of :mod:`trigmon.keeper.protocol`."""
    extras: dict[str, Any] = {"lease_s": lease_s} if lease_s else {}
    if plan.fork:
        extras["fork"] = plan.fork
    if plan.user:
        extras["user"] = _identity(plan.user)
    limits = {"memory_mib": plan.memory_limit_mib, "cpu_s": plan.cpu_limit_s, "open_files": plan.open_files_limit}
    if given := {name: limit for name, limit in limits.items() if limit}:
        extras["limits"] = given
    if plan.secrets:
        extras["secrets"] = plan.secrets
    return extras


def _identity(name: str) -> dict[str, Any]:
    try:
        user = account(name)
    except LaunchError:  # gone since the plan was made: the keeper refuses this, and the run fails with that
        return {"name": name, "uid": 0, "gid": 0, "groups": []}
    return {"name": name, "uid": user.uid, "gid": user.gid, "groups": user.groups}


def _spawn(argv: list[str], listener: socket.socket, said: int) -> int:
    """Starts the process, in a session of its own; what it has to say of its own troubles goes to ``said``."""
    return os.posix_spawn(
        sys.executable,
        argv,
        os.environ,
        file_actions=[
            (os.POSIX_SPAWN_DUP2, said, 2),
            (os.POSIX_SPAWN_DUP2, listener.fileno(), protocol.LISTENER),
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        ],
        setsid=True,
        # What a shell or nohup had the monitor ignore, no program is to ignore.
        setsigdef=signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP},
        setsigmask=[],
    )

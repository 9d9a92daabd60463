"""Users of this machine with free numbers, and processes of theirs that make attempts."""

from __future__ import annotations

import errno
import importlib
import multiprocessing.connection
import os
import pkgutil
import pwd
import signal
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trigmon.mq.errors import MQError
from trigmon.mq.reasons import Reason

REFUSED, DID, BROKEN = "refused", "did", "broken"
_REFUSALS = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ECONNRESET, errno.EPIPE, errno.ECONNABORTED}
# These say that the attempt missed its target, or that there was nobody to attack: no refusal.
_MISSES = {Reason.UNKNOWN_OBJECT_NAME, Reason.Q_MGR_NOT_AVAILABLE, Reason.Q_MGR_NAME_ERROR, Reason.HCONN_ERROR}


@dataclass(frozen=True)
class User:
    """A user by numbers; it needs no name."""

    uid: int
    groups: tuple[int, ...] = ()

    def popen(self) -> dict[str, Any]:
        """What subprocess.Popen takes to start a program as this user."""
        return {"user": self.uid, "group": self.uid, "extra_groups": list(self.groups)}

    def become(self) -> None:
        """Makes the process this user's, for good."""
        os.setgroups(self.groups)
        os.setresgid(self.uid, self.uid, self.uid)
        os.setresuid(self.uid, self.uid, self.uid)


def free_numbers(count: int) -> list[int]:
    """Numbers of users that this machine does not have; other tests of this moment have others."""
    taken = {entry.pw_uid for entry in pwd.getpwall()}
    first = 20_000 + os.getpid() % 4_000 * 10
    return [number for number in range(first, first + 100) if number not in taken][:count]


class Actor:
    """A process of a user, a fork of this one: it does what it is asked by the number of an attempt.

    ``work`` has what it may be asked for, by name; each takes ``place`` and what is given with it.
    """

    def __init__(self, user: User, place: Any, work: dict[str, Callable[[Any, Any], Any]]) -> None:
        ours, theirs = multiprocessing.connection.Pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                _serve(user, theirs, place, work)
            finally:
                os._exit(0)
        theirs.close()
        self._link = ours

    def ask(self, name: str, given: Any = None, timeout_s: float = 60.0) -> tuple[str, Any]:
        """How it went (refused, did, broken), and what was returned or raised."""
        self._link.send((name, given))
        if not self._link.poll(timeout_s):
            return BROKEN, f"no answer in {timeout_s:g} s"
        try:
            return self._link.recv()
        except EOFError:
            return BROKEN, "the attacker's process ended"

    def end(self) -> None:
        """Ends the process."""
        self._link.close()
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def _serve(user: User, link: Any, place: Any, work: dict[str, Callable[[Any, Any], Any]]) -> None:
    try:
        _leave(link.fileno())
        user.become()
    except BaseException:
        traceback.print_exc()
        return
    while True:
        try:
            name, given = link.recv()
        except EOFError:
            return
        place.let_go()
        link.send(_tried(work[name], place, given))


def _leave(kept: int) -> None:
    """Keeps nothing that was this process's: descriptors, signals, directory, variables."""
    for number in [int(entry.name) for entry in Path("/proc/self/fd").iterdir()]:
        if number > 2 and number != kept:
            with suppress(OSError):  # the list's own
                os.close(number)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.chdir("/")
    os.umask(0o022)
    for name in [name for name in os.environ if name.startswith(("TRIGMON_", "XDG_"))]:
        del os.environ[name]


def _tried(attempt: Callable[[Any, Any], Any], place: Any, given: Any) -> tuple[str, Any]:
    try:
        return DID, attempt(place, given)
    except MQError as error:
        return BROKEN if error.reason in _MISSES else REFUSED, repr(error)
    except OSError as error:
        return REFUSED if error.errno in _REFUSALS else BROKEN, repr(error)
    except EOFError as error:
        return REFUSED, repr(error)
    except BaseException:
        return BROKEN, traceback.format_exc()


def packages(names: Iterable[str]) -> None:
    """Imports packages whole, and what Python itself imports late: the attackers may not be able to read it."""
    for name in ("encodings.idna", "grp", "pwd", "stringprep", "unicodedata"):
        importlib.import_module(name)
    for name in names:
        package = importlib.import_module(name)
        for found in pkgutil.walk_packages(package.__path__, f"{name}."):
            importlib.import_module(found.name)

"""A program's start as another user or with limits, by a fork of the keeper.

The keeper has one thread and is small. The ways without a fork were measured and not taken: a shell's ``ulimit``,
prlimit(1) and setpriv(1) save half a millisecond, hide why the kernel will not execute the program, and run a text
without a ``#!`` line as a script; ``Popen(user=)`` enters the working directory while it still has every right.

Standard library only, and imported by the keeper when it is needed.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

MORE_CPU_S = 5
"""How much processor time lies between SIGXCPU and SIGKILL, for a program to clean up in."""


_PR_CAPBSET_DROP, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 24, 47, 4
_CAPABILITY_VERSION_3 = 0x20080522
_CAPABILITIES = 64
"""The most that there can be; dropping one that the kernel does not know fails, and ends the dropping."""

_libc = ctypes.CDLL(None, use_errno=True)
_NOT_MARKED = "-1"


class ExecRefusedError(OSError):
    """The kernel refused to execute the program."""


def start(
    argv: Sequence[str],
    environment: Mapping[str, str],
    working_directory: str,
    stdio: Sequence[int],
    *,
    user: Mapping[str, Any],
    limits: Mapping[str, int],
    credentials: str,
    mark: Path,
) -> int:
    """Starts a program in a session of its own, with three descriptors, and returns its process id.

    ``user`` is ``{}`` or has ``name uid gid groups``; ``limits`` may have ``memory_mib cpu_s open_files``;
    ``credentials`` is a directory that it has to reach, or ""; ``mark`` a file that it makes itself, for it has begun.
    Raises ExecRefusedError, and OSError for all else.
    """
    if user and user["uid"] <= 0:
        raise OSError("no program is ever started as user 0")
    errors, error_pipe = os.pipe2(os.O_CLOEXEC)
    with os.fdopen(errors, "rb") as file:
        try:
            pid = os.fork()
            if pid == 0:
                _execute(error_pipe, argv, environment, working_directory, stdio, user, limits, credentials, mark)
        finally:
            os.close(error_pipe)
        failure = file.read()  # ends when the other end is closed, by the execve or by the end of the process
    if failure:
        os.waitpid(pid, 0)
        number, _, text = failure.decode(errors="surrogateescape").partition(" ")
        if number == _NOT_MARKED:
            raise OSError(int(text), os.strerror(int(text)))
        if int(number):
            raise ExecRefusedError(int(number), text)
        raise OSError(text)
    return pid


def _execute(
    error_pipe: int,
    argv: Sequence[str],
    environment: Mapping[str, str],
    working_directory: str,
    stdio: Sequence[int],
    user: Mapping[str, Any],
    limits: Mapping[str, int],
    credentials: str,
    mark: Path,
) -> NoReturn:
    """Executes the program in the new process, or writes the error to the pipe and ends."""
    try:
        _make(mark, error_pipe)
        _leave_the_keeper(stdio)
        _limit_files(limits.get("open_files", 0))
        user_name = user.get("name", "its user")
        if user:
            _become(user)
        _enter(working_directory, user_name)
        if credentials:
            _reach(Path(credentials), user_name)
        words, variables = [os.fsencode(word) for word in argv], {**environment}
        _limit(limits)
        try:
            os.execve(words[0], words, variables)  # noqa: S606 - no shell, on purpose
        except OSError as error:
            os.write(error_pipe, f"{error.errno} {error.strerror}".encode())
    except BaseException as error:
        with suppress(OSError):
            os.write(error_pipe, f"0 {str(error) or repr(error)}".encode(errors="surrogateescape"))
    finally:
        os._exit(127)


def _make(mark: Path, error_pipe: int) -> None:
    """Marks that the program has begun, with the keeper's rights; without the mark nothing is executed."""
    try:
        os.close(os.open(mark, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except OSError as error:
        os.write(error_pipe, f"{_NOT_MARKED} {error.errno}".encode())
        os._exit(127)


def _leave_the_keeper(stdio: Sequence[int]) -> None:
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and so would the program
        signal.signal(number, signal.SIG_DFL)
    os.setsid()
    for target, descriptor in enumerate(stdio):
        os.dup2(descriptor, target)
    for name in [entry.name for entry in Path("/proc/self/fd").iterdir()]:
        with suppress(OSError):  # the list's own is closed by now
            if int(name) > 2:
                os.set_inheritable(int(name), False)


def _become(user: Mapping[str, Any]) -> None:
    _bound()
    try:
        os.setgroups(user["groups"])
        os.setresgid(user["gid"], user["gid"], user["gid"])
        os.setresuid(user["uid"], user["uid"], user["uid"])
    except OSError as error:
        raise OSError(f"it could not become the user {user['name']}: {error.strerror}") from None
    _give_up_rights()


def _bound() -> None:
    """Empties the bounding set, so that no file gives the program a right (capabilities(7)).

    That takes CAP_SETPCAP, which a monitor in its unit has not: there the unit bounds it, with no_new_privs.
    """
    for capability in range(_CAPABILITIES):
        if _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0):
            return


def _give_up_rights() -> None:
    """Gives up all capabilities, the inheritable too, which an execve would keep: another user's program gets none.

    Raises OSError.
    """
    _libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    header, none = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0), (ctypes.c_uint32 * 6)()
    if _libc.capset(header, none):
        raise OSError(f"it could not give up the monitor's rights: {os.strerror(ctypes.get_errno())}")


def _enter(directory: str, user_name: str) -> None:
    try:
        os.chdir(directory)
    except OSError as error:
        raise OSError(f"{user_name} cannot enter the working directory {directory}: {error.strerror}") from None


def _reach(credentials: Path, user_name: str) -> None:
    for passed in reversed(credentials.parents):
        if not os.access(passed, os.X_OK):
            raise OSError(
                f"{user_name} may not pass through {passed}, below which its secrets lie "
                f"(chmod o+x {passed}, or setfacl -m u:{user_name}:x {passed})"
            )


def _limit_files(most: int) -> None:
    """Sets the limit of open files; first of all, for raising it takes a right that is given up next."""
    if most:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        except (OSError, ValueError):
            _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, hard), min(most, hard)))


def _limit(limits: Mapping[str, int]) -> None:
    """Sets the limits of use; last of all, since they bind this process too."""
    for which, wanted in limits_of_use(limits):
        lower(0, which, wanted)


def limits_of_use(limits: Mapping[str, int]) -> list[tuple[int, tuple[int, int]]]:
    """Returns the limits of memory and processor time that are asked for, soft and hard.

    Memory is what a process may write to alone (RLIMIT_DATA). Its address space (RLIMIT_AS) says nothing of use: a Java
    machine reserves gigabytes that it never touches, and would not start.
    """
    asked = []
    if memory_mib := limits.get("memory_mib", 0):
        asked.append((resource.RLIMIT_DATA, (memory_mib << 20, memory_mib << 20)))
    if cpu_s := limits.get("cpu_s", 0):
        asked.append((resource.RLIMIT_CPU, (cpu_s, cpu_s + MORE_CPU_S)))
    return asked


def lower(pid: int, which: int, wanted: tuple[int, int]) -> None:
    """Sets a limit of a process (0: of this one), at most as high as it may be. Raises OSError, ValueError."""
    _, most = resource.prlimit(pid, which)
    if most != resource.RLIM_INFINITY:
        wanted = min(wanted[0], most), min(wanted[1], most)
    resource.prlimit(pid, which, wanted)

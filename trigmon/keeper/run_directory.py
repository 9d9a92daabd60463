"""The files of a run's directory, from which any keeper or monitor reads its state: claim, process, exit, output.

=========  =================================================================================================
the        ``runs/RUN`` itself: the process that makes it has the right to start the run, once and for
directory  all. It is durable before anything is started, so a run is not started twice even after a power cut.
           It gets this name with the claim in it: what a killed keeper was still to claim is claimed anew.
claim      two lines of JSON: ``keeper`` (the name of its socket), ``boot`` and ``marks`` (whether the next
           file is made) before the start; ``pid``, ``ticks``, ``start_ms``, ``argv`` and, of what a fork server
           made, ``forked`` behind it. Boot and ticks make the process id unique. A unit of systemd's that
           is to end has one line more: ``ends`` (why), ``grace_s``.
begun      made by the new process itself, the last thing before it executes the program: a claim that says
           ``marks`` and has no such file is of a program that never came to be
exit       one object, written beside and renamed: ``run``, ``pid``, ``start_ms``, ``end_ms``, ``status``
           (0 to 255, or minus the signal), ``why`` (``""``, or one of the reasons of
           :mod:`trigmon.keeper.protocol`), ``limit_s``; where no program came to be, ``run``, ``end_ms``,
           ``errno`` (0: not the kernel's refusal to execute it) and ``error``
stdout     what the program wrote
stderr
creden-    its secrets, as long as it runs (:mod:`trigmon.keeper.credentials`)
tials
again-N    a directory like this one, of the Nth process that cleaned up what a killed one had left elsewhere
=========  =================================================================================================

Standard library only: the keeper imports it.
"""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

CLAIM, BEGUN, EXIT = "claim", "begun", "exit"
STDOUT, STDERR = "stdout", "stderr"
"""The files that a program's output goes to."""
_PROC = Path("/proc")
Fields = dict[str, Any]


def make(directory: Path, keeper: str, *, marks: bool = False) -> None:
    """Claims a run. Raises FileExistsError when it is claimed; durable only after :func:`make_durable`.

    What cannot be written, an OSError, is no claim: nothing of it is left. ``marks``: its process will make BEGUN.
    """
    if directory.exists():  # an empty one too: after a power cut that may be what is left of a claim
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(directory))
    beside = directory.with_name(f".{directory.name}.{os.getpid()}")
    try:
        _make_empty(beside)
        _add(beside, {"keeper": keeper, "boot": boot_id(), "marks": marks})
        beside.rename(directory)
    except OSError as error:
        _remove(beside)
        if error.errno == errno.ENOTEMPTY:  # claimed meanwhile
            raise FileExistsError(error.errno, error.strerror, str(directory)) from None
        raise


def _make_empty(directory: Path) -> None:
    try:
        directory.mkdir(mode=0o700)
    except FileNotFoundError:  # the first run of all
        directory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        make_durable(directory.parent.parent)
        directory.mkdir(mode=0o700)
    except FileExistsError:  # of a keeper that was killed and had this number
        _remove(directory)
        directory.mkdir(mode=0o700)


def has_begun(directory: Path) -> bool:
    """Returns whether the program of this claim was executed, or is being executed."""
    return (directory / BEGUN).exists()


def withdraw(directory: Path) -> bool:
    """Takes back the claim of a program that was never executed, so that the run may be claimed anew; False if it was.

    The directory gets another name first: its process, if one is just being made, can mark it no more, and so never
    executes the program.
    """
    claim = read(directory) or {}
    if not claim.get("marks") or claim.get("boot") != boot_id():  # after a power cut the mark may be what is missing
        return False
    aside = directory.with_name(f".{directory.name}")
    if aside.exists():  # by one that was killed here
        _remove(aside)
    try:
        directory.rename(aside)
        if has_begun(aside):
            aside.rename(directory)
            return False
    except OSError:
        return False
    _remove(aside)
    return True


def next_after(directory: Path, base: Path) -> Path:
    """Returns the directory of the process that follows the one of ``directory`` in a run."""
    number = 0 if directory == base else int(directory.name.rpartition("-")[2])
    return base / f"again-{number + 1}"


def all_of(base: Path) -> list[Path]:
    """Returns the directories of a run's processes, the first one first."""
    found = [base]
    while (again := next_after(found[-1], base)).exists():
        found.append(again)
    return found


def make_durable(runs_directory: Path) -> None:
    """Makes all entries of this directory survive a power cut, by one fsync."""
    descriptor = os.open(runs_directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def note_start(
    directory: Path, pid: int, start_ms: int, argv: list[str], *, ticks: int = 0, is_forked: bool = False
) -> None:
    """Adds the process of the run; ``ticks``: when it started, if known; ``is_forked``: by a fork server."""
    fields = {"pid": pid, "ticks": ticks or start_ticks(pid), "start_ms": start_ms, "argv": argv}
    _add(directory, fields | ({"forked": True} if is_forked else {}))


def note_end(directory: Path, why: str, grace_s: float) -> None:
    """Adds that it is to end, for a later keeper."""
    _add(directory, {"ends": why, "grace_s": grace_s})


def note_exit(directory: Path, fields: Fields) -> None:
    """Writes how it ended; a reader sees all of it or nothing. Raises OSError."""
    beside = directory / f".{EXIT}"
    _write(beside, os.O_TRUNC, json.dumps(fields))
    beside.replace(directory / EXIT)


def read(directory: Path) -> Fields | None:
    """Returns the claim as far as it was written; None when the run is not claimed."""
    try:
        lines = (directory / CLAIM).read_text().splitlines()
    except OSError:
        return {} if directory.exists() else None
    known: Fields = {}
    for line in lines:
        with suppress(ValueError):  # cut short by a power cut
            known |= json.loads(line)
    return known


def read_exit(directory: Path) -> Fields | None:
    """Returns how it ended, None when that is not written."""
    try:
        found = json.loads((directory / EXIT).read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def open_program(claim: Fields, run_id: str) -> tuple[int, int] | None:
    """Returns process id and pidfd of the claimed run's program, None when it does not run.

    The claim of a keeper that died in the moment of starting names no process; then it is looked for by the variable
    that every program gets.
    """
    if claim.get("pid"):
        return _opened(claim["pid"], lambda pid: is_same(claim, pid))
    return _opened(find_program_of(run_id), lambda pid: is_program_of(pid, run_id))


def is_same(claim: Fields, pid: int) -> bool:
    """Returns whether the process of this id is the one that was claimed, and no later one."""
    return claim.get("boot") == boot_id() and claim.get("ticks") == start_ticks(pid) != 0


def is_program_of(pid: int, run_id: str) -> bool:
    """Returns whether this process is alive, leads its session, names the run, and may be read by us."""
    try:
        return run_of(pid) == run_id and os.getsid(pid) == pid
    except OSError:
        return False


def find_program_of(run_id: str) -> int:
    """Returns the process id of the run's program, 0 when it does not run."""
    return next((pid for pid in all_processes() if is_program_of(pid, run_id)), 0)


def all_processes() -> Iterator[int]:
    """Returns the process ids of this machine."""
    return (int(entry.name) for entry in _PROC.iterdir() if entry.name.isdecimal())


def run_of(pid: int) -> str:
    """Returns the run that a process's environment names; "" when it names none, or may not be read."""
    return variable_of(pid, "TRIGMON_RUN")


def variable_of(pid: int, name: str) -> str:
    """Returns a variable of a process's environment; "" when it has none of the name, or may not be read."""
    try:
        variables = (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return ""
    named = (value for value in variables if value.startswith(f"{name}=".encode()))
    return os.fsdecode(next(named, b"=").partition(b"=")[2])


def is_of_user(pid: int, uid: int) -> bool:
    """Returns whether this user may signal a process by kill(2)'s own rule: it is its real or its saved user."""
    try:
        lines = (_PROC / str(pid) / "status").read_bytes().splitlines()
    except OSError:
        return False
    real, _, saved, _ = next(line.split()[1:] for line in lines if line.startswith(b"Uid:"))
    return str(uid).encode() in (real, saved)


def start_ticks(pid: int) -> int:
    """Returns a process's start in clock ticks since boot; 0 when there is none, or it has ended (field 22)."""
    state, *fields = stat_fields(pid) or (b"X",)
    return 0 if state in b"ZX" else int(fields[18])


def ticks_now() -> int:
    """Returns the clock ticks since boot, as :func:`start_ticks` counts them."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK") // 1_000_000_000


def stat_fields(pid: int) -> list[bytes]:
    """Returns the fields of proc_pid_stat(5) from the third on; [] where there is no such process."""
    try:
        descriptor = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return []
    try:
        return os.read(descriptor, 4096).rpartition(b")")[2].split()
    except OSError:  # it has ended meanwhile
        return []
    finally:
        os.close(descriptor)


@cache
def boot_id() -> str:
    """Returns the id of this boot of the machine."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _opened(pid: int, is_it: Any) -> tuple[int, int] | None:
    if not pid:
        return None
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return None
    if is_it(pid):  # checked of the process that the descriptor refers to
        return pid, descriptor
    os.close(descriptor)
    return None


def _add(directory: Path, fields: Fields) -> None:
    _write(directory / CLAIM, os.O_APPEND, f"{json.dumps(fields)}\n")


def _write(path: Path, how: int, text: str) -> None:
    """Writes to a file, which is made where it is not there. Raises OSError where not all has room."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | how, 0o600)
    data = text.encode()
    try:
        written = os.write(descriptor, data)
        if written < len(data):  # half a line would spoil the next
            os.ftruncate(descriptor, os.fstat(descriptor).st_size - written)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    finally:
        os.close(descriptor)


def _remove(directory: Path) -> None:
    """Removes a directory and what is in it, as far as that can be removed."""
    import shutil  # most keepers never need it

    shutil.rmtree(directory, ignore_errors=True)


def now_ms() -> int:
    """Returns milliseconds since 1970 by this machine's clock."""
    return time.time_ns() // 1_000_000

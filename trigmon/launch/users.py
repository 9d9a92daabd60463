"""The users as which a program may run (RUNAS): the monitor's own, and those that its administrator lists in a file.

A user who may define a process chooses the program. The file, which only root or the monitor's user may write, limits
the users it can run as. It is read at each launch that needs it, so that an edit is in force at once.
"""

from __future__ import annotations

import os
import pwd
import stat
from io import TextIOWrapper
from pathlib import Path

import msgspec

from trigmon import files
from trigmon.launch.launch_plan import LaunchError

CAP_CHOWN, CAP_KILL, CAP_SETGID, CAP_SETUID = 0, 5, 6, 7
"""Numbers of capabilities(7)."""
_NAMES = {CAP_CHOWN: "CAP_CHOWN", CAP_KILL: "CAP_KILL", CAP_SETGID: "CAP_SETGID", CAP_SETUID: "CAP_SETUID"}


class Account(msgspec.Struct, frozen=True):
    """A user as the system knows it; ``groups`` are all of its groups, the primary one among them."""

    name: str
    uid: int
    gid: int
    groups: list[int]
    home: str
    shell: str

    def environment(self) -> dict[str, str]:
        """Returns the variables that describe the user: HOME, USER, LOGNAME, SHELL."""
        return {"HOME": self.home, "USER": self.name, "LOGNAME": self.name, "SHELL": self.shell}


def account(name: str) -> Account:
    """Returns the user of this name. Raises LaunchError when there is none, and for every name of user 0."""
    try:
        found = pwd.getpwnam(name)
    except KeyError:
        hint = "; MQSC makes capitals of what stands without quotes" if name.isupper() else ""
        raise LaunchError(f"RUNAS({name}): this machine has no such user{hint}") from None
    if found.pw_uid == 0:
        raise LaunchError(f"RUNAS({name}): it is user 0, and no program is ever started as that")
    groups = os.getgrouplist(name, found.pw_gid)
    return Account(name, found.pw_uid, found.pw_gid, groups, found.pw_dir, found.pw_shell or "/bin/sh")


def allowed(name: str, allow_list: Path | None, *, gives_files: bool = False) -> Account | None:
    """Returns the user that a program is to run as; None where that is the monitor's own. Raises LaunchError.

    ``gives_files``: files are made for it, which takes one right more.
    """
    wanted = account(name)
    if wanted.uid == os.geteuid():
        return None
    if allow_list is None:
        raise LaunchError(
            f"RUNAS({name}): this monitor starts programs as its own user only; list {name} in a file that root owns, "
            "and name the file in monitor.run_as_file"
        )
    if name not in listed(allow_list):
        raise LaunchError(f"RUNAS({name}): {allow_list} does not list this user; add a line {name}")
    needed = [CAP_SETUID, CAP_SETGID, CAP_KILL] + ([CAP_CHOWN] if gives_files else [])
    if missing := [number for number in needed if not _has(number)]:
        rights = " ".join(_NAMES[number] for number in missing)
        raise LaunchError(
            f"RUNAS({name}): the monitor may not start programs as other users; it lacks {rights} "
            f"(in its systemd unit: AmbientCapabilities= and CapabilityBoundingSet= with {rights})"
        )
    return wanted


def listed(allow_list: Path) -> set[str]:
    """Returns the users of an allow-list: one a line, ``#`` begins a comment.

    Raises LaunchError when other users could have written it.
    """
    try:
        with TextIOWrapper(files.opened(allow_list), encoding="utf-8") as file:
            _trust(allow_list, os.fstat(file.fileno()))
            _trust(allow_list.parent, allow_list.parent.stat())
            lines = [line.partition("#")[0].strip() for line in file]
    except (OSError, UnicodeDecodeError) as error:
        raise LaunchError(f"monitor.run_as_file {allow_list} cannot be read: {error}") from None
    return {line for line in lines if line}


def _trust(path: Path, status: os.stat_result) -> None:
    """Raises LaunchError when users other than root and the monitor's user can write the file."""
    if status.st_uid not in (0, os.geteuid()):
        owner = f"user {status.st_uid}"
        raise LaunchError(f"monitor.run_as_file: {path} belongs to {owner}; it must be root's (chown root {path})")
    is_shared = stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not is_shared:
        raise LaunchError(f"monitor.run_as_file: others may write {path} (chmod go-w {path})")


def _has(capability: int) -> bool:
    """Returns whether this process has a capability in force, and with it the keeper it starts."""
    lines = Path("/proc/self/status").read_text().splitlines()
    effective = next((line.split()[1] for line in lines if line.startswith("CapEff:")), "0")
    return bool(int(effective, 16) >> capability & 1)

"""Which user serves the other end of a TCP connection within this machine.

TCP does not authenticate, and any user can listen on a free port. But the kernel lists every
TCP socket with the user who made it (``/proc/net/tcp`` of proc(5)), an accepted one with the user who accepted it. So
on one machine a program can tell its queue manager from a stranger who listens on that port, before it puts anything.
A listener on another machine cannot be recognised.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

from trigmon import paths
from trigmon.mq.errors import QMgrNameError

_TABLES = (Path("/proc/self/net/tcp"), Path("/proc/self/net/tcp6"))
_REMOTE, _LOCAL, _UID, _INODE = 2, 1, 7, 9  # columns
_MAPPED = "0000000000000000FFFF0000"  # an IPv4 address in an IPv6 socket, as the table writes it
_OVERFLOW = Path("/proc/sys/kernel/overflowuid")
_LOOKS = 3
"""The table is read in pieces while it changes, so a line may be missed."""


def check_served_by(link: socket.socket, where: str, q_mgr_name: str, user: str) -> None:
    """Checks whose process has accepted a connection to this machine; a connection that leaves it is not looked at.

    That must be ``user`` (a name or a number) or, where that is empty, root, this process's user, or the owner of the
    runtime directory of that queue manager. Raises QMgrNameError (2058), which names both, also for a user that
    this machine does not have.
    """
    expected = {_number(user)} if user else _default(q_mgr_name)
    try:
        found = owner(link)
    except OSError:
        if user:
            raise QMgrNameError(f"{where}: whose process answers cannot be seen without {_TABLES[0]}") from None
        return  # a system without this table
    if found is None and not ipaddress.ip_address(link.getpeername()[0]).is_loopback:
        if user:
            raise QMgrNameError(f"{where}: whose process answers cannot be seen from another machine")
        return
    if found not in expected:
        by = "a process that cannot be seen" if found is None else f"user {_name(found)}"
        meant = " or ".join(_name(uid) for uid in sorted(expected))
        remedy = "nothing was put; use the queue manager's Unix socket"
        if found is not None:
            remedy += (
                f" or, if that user is meant, as behind a forwarded port, end the address with ?user={_name(found)}"
            )
        raise QMgrNameError(f"{where} is served by {by}, not by {meant}: {remedy}")


def owner(link: socket.socket) -> int | None:
    """Returns the user who accepted the other end, when it is on this machine.

    Raises OSError where that cannot be read.
    """
    for _ in range(_LOOKS):
        for line in _lines(link):
            return int(line[_UID])
    return None


def _lines(link: socket.socket) -> Iterator[list[str]]:
    """Yields the line of the other end: remote here is local there. An end that is not accepted yet has no inode."""
    there, here = (_written(name) for name in (link.getpeername(), link.getsockname()))
    wanted = {(there, here), (_MAPPED + there, _MAPPED + here)}
    for table in _TABLES:
        try:
            with table.open() as lines:
                for text in lines:
                    line = text.split()
                    if (line[_LOCAL], line[_REMOTE]) in wanted and line[_INODE] != "0":
                        yield line
        except FileNotFoundError:
            if table == _TABLES[0]:
                raise


def _written(name: tuple[str, int]) -> str:
    """Returns an address as the table writes it: words of 32 bits in the machine's byte order, and the port."""
    packed = ipaddress.ip_address(name[0]).packed
    words = (packed[at : at + 4] for at in range(0, len(packed), 4))
    return "".join(f"{int.from_bytes(word, sys.byteorder):08X}" for word in words) + f":{name[1]:04X}"


def _default(q_mgr_name: str) -> set[int]:
    expected = {0, os.geteuid()}
    with contextlib.suppress(OSError):  # it is not there, or may not be seen
        expected.add(paths.find_socket(q_mgr_name).parent.stat().st_uid)
    if not _sees_all_users():
        # Every user whom this user namespace does not know has one number here: user_namespaces(7).
        with contextlib.suppress(OSError, ValueError):
            expected.discard(int(_OVERFLOW.read_text()))
    return expected


def _sees_all_users() -> bool:
    with contextlib.suppress(OSError):
        return Path("/proc/self/uid_map").read_text().split() == ["0", "0", "4294967295"]
    return True


def _number(user: str) -> int:
    import pwd

    try:
        return int(user) if user.isdecimal() else pwd.getpwnam(user).pw_uid
    except KeyError:
        raise QMgrNameError(f"?user={user}: this machine has no such user") from None


def _name(uid: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)

"""Who a peer is, whether it may administer, and whether it may be a trigger monitor.

On the Unix socket the kernel says who is there (SO_PEERCRED, unix(7)), whatever the peer says of itself; who may be
there at all is the socket's mode. Putting and getting is for all who come in. Defining, altering, deleting, clearing
and moving is for root, for the daemon's own user, and for those the settings name; so are pausing, resuming, and
ending or repeating runs, giving back what a connected job has reserved, and setting a message's context, by which it
seems another's. MQSET, which can switch triggering off, is for those too, and for those whom the settings name for it
(MQ's authority ``+set``, which ``+put +get`` does not include). A monitor runs programs by what the ledger of runs
says, so writing there is for administrators, and for the accounts the settings name as monitors'. Over plain TCP
nobody proves a user, so no client there is an administrator or a monitor, or has MQSET. By TLS a certificate or a
password proves an account (:mod:`trigmon.tls.accounts`), whose rights are those of its name in the same settings:
root's and the daemon's own rights are of this machine's users alone.
"""

from __future__ import annotations

import grp
import os
import pwd
import socket
import struct
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from trigmon.rules.model.authority import UserFacts
from trigmon.rules.model.ticket import Ticket
from trigmon.server.exit_status import CannotStart

if TYPE_CHECKING:
    from trigmon.tls.accounts import Account

_CREDENTIALS = struct.Struct("3i")
REMEMBERED_S = 30.0
"""So long after it was looked up a new connection of a user has the name and the groups that it had then."""
_MOST_KNOWN = 10_000
BY_TLS = -2
"""In place of a user's number: comes by TLS, and has not proved a user yet."""


@dataclass(frozen=True)
class Peer:
    """The other end of a connection: process and user as the kernel knows them, -1 and "" where it does not."""

    pid: int = -1
    uid: int = -1
    gid: int = -1
    user: str = ""
    administrator: bool = False
    monitor: bool = False
    setter: bool = False
    groups: tuple[str, ...] = ()
    address: str = ""
    ticket: Ticket | None = None

    def __str__(self) -> str:
        if not self.address:
            return f"pid {self.pid} of {self.user}"
        return f"{self.user} at {self.address}" if self.user else self.address

    @property
    def host(self) -> str:
        """Its address without the port, by TCP and TLS."""
        return self.address.rpartition(":")[0].strip("[]")

    @property
    def shares(self) -> tuple[int | str, ...]:
        """Whose limits it counts under: its user's, by number and by name; -1 for all by plain TCP; see BY_TLS.

        A name is one user, by whatever way it comes. Those by tickets are a part of their user's: tickets that were
        stolen leave the other part to the user whose job they were for.
        """
        user = (self.user,) if self.user else ()
        if self.ticket is not None:
            return (f"tickets of {self.user}", *(user or (-1,)))
        return user if user and self.uid < 0 else (self.uid, *user)


class Named:
    """Who a setting names: users' names, users' numbers, and ``%group`` names."""

    def __init__(self, names: list[str]) -> None:
        self._users = {name for name in names if not name.startswith("%")}
        self._groups = {name[1:] for name in names if name.startswith("%")}

    def has_account(self, user: str, groups: Collection[str]) -> bool:
        """Returns whether an account of TLS is one of them."""
        return user in self._users or not self._groups.isdisjoint(groups)

    def has(self, uid: int, user: str, groups: Collection[str]) -> bool:
        """Returns whether this user is one of them."""
        return str(uid) in self._users or self.has_account(user, groups)


class Authority:
    """The rule for administrators and monitors; see :class:`Named` for what their lists hold.

    Raises CannotStart for an administrator or a setter that this machine does not have, unless accounts of TLS are
    configured, which may have that name. A monitor's account may come later.
    """

    def __init__(
        self,
        administrators: list[str],
        monitors: list[str] | None = None,
        setters: list[str] | None = None,
        *,
        has_accounts: bool = False,
    ) -> None:
        if not has_accounts:
            for key, names in (("administrators", administrators), ("setters", setters or [])):
                for name in names:
                    _check_known(f"server.{key}", name)
        self._administrators = Named(administrators)
        self._monitors = Named(monitors or [])
        self._setters = Named(setters or [])
        self._always = {uid: user_name(uid) for uid in (0, os.geteuid())}
        self.accounts: Callable[[], Mapping[str, Account]] = dict
        self._known: dict[tuple[int, int], tuple[float, Peer]] = {}

    @staticmethod
    def credentials(connection: socket.socket) -> Peer:
        """Returns what the kernel knows of the other end of an accepted connection: no names, no rights."""
        if connection.family != socket.AF_UNIX:
            host, port = connection.getpeername()[:2]
            return Peer(address=f"{host}:{port}")
        raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        pid, uid, gid = _CREDENTIALS.unpack(raw)
        # The peer's user may have no number in our user namespace: it counts as an unknown user.
        return Peer(pid) if uid == -1 else Peer(pid, uid, gid)

    def known(self, credentials: Peer) -> Peer | None:
        """Returns the peer with its rights; None where the system's user database has to be asked.

        It is never asked about root and the daemon's own user: an operator gets in without it.
        """
        if credentials.uid == -1:
            return credentials
        if credentials.uid in self._always:
            return self._with_rights(credentials, self._always[credentials.uid])
        asked, known = self._known.get((credentials.uid, credentials.gid), (0.0, None))
        if known is None or time.monotonic() - asked > REMEMBERED_S:
            return None
        return replace(known, pid=credentials.pid)

    def look_up(self, credentials: Peer) -> Peer:
        """Asks the system's user database, which can be a service on the network, and keeps the answer."""
        now, user = time.monotonic(), user_name(credentials.uid)
        peer = self._with_rights(credentials, user, group_names(user, credentials.gid))
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[peer.uid, peer.gid] = now, peer
        return peer

    def _with_rights(self, credentials: Peer, user: str, groups: Collection[str] = ()) -> Peer:
        who = credentials.uid, user, groups
        return replace(
            credentials,
            user=user,
            groups=tuple(sorted(groups)),
            administrator=self.administers(*who),
            monitor=self.monitors(*who),
            setter=self.sets(*who),
        )

    def of_account(self, user: str, groups: Collection[str], address: str) -> Peer:
        """Returns the peer that an account of TLS makes: what it may stands in the settings, by name alone."""
        administers = self._administrators.has_account(user, groups)
        return Peer(
            user=user,
            administrator=administers,
            monitor=administers or self._monitors.has_account(user, groups),
            setter=administers or self._setters.has_account(user, groups),
            groups=tuple(sorted(groups)),
            address=address,
        )

    def known_user(self, user: str, groups: Sequence[str]) -> UserFacts:
        """Returns what a user of this name with these groups may; the system's user database is not asked.

        An account of TLS has its groups besides.
        """
        account = self.accounts().get(user)
        in_groups = sorted({*groups, *(account.groups if account is not None else ())})
        of = self.of_account(user, in_groups, "")
        # An account may have the name of root; which of the two is meant is not known then.
        administers = of.administrator or (account is None and user in self._always.values())
        return UserFacts(user, of.groups, administers, administers or of.monitor, administers or of.setter)

    def administers(self, uid: int, user: str, groups: Collection[str]) -> bool:
        """Returns whether this user may change objects."""
        return uid in (0, os.geteuid()) or self._administrators.has(uid, user, groups)

    def monitors(self, uid: int, user: str, groups: Collection[str]) -> bool:
        """Returns whether this user may write the run ledger."""
        return self.administers(uid, user, groups) or self._monitors.has(uid, user, groups)

    def sets(self, uid: int, user: str, groups: Collection[str]) -> bool:
        """Returns whether this user may set attributes by MQSET."""
        return self.administers(uid, user, groups) or self._setters.has(uid, user, groups)


def _check_known(key: str, name: str) -> None:
    """Raises CannotStart. A user's number needs no name: in a container many have none."""
    try:
        if name.startswith("%"):
            grp.getgrnam(name[1:])
        elif not name.isdecimal():
            pwd.getpwnam(name)
    except KeyError:
        what = f"group {name[1:]!r}" if name.startswith("%") else f"user {name!r}"
        raise CannotStart(f"{key}: there is no {what} on this machine") from None


def user_name(uid: int) -> str:
    """Returns the name of a user, or its number where it has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def group_names(user: str, gid: int) -> set[str]:
    """Returns the groups of a user: the one of its process, and those the system's database puts it in."""
    try:
        numbers = os.getgrouplist(user, gid)
    except OSError:
        numbers = [gid]
    return {name for number in numbers if (name := group_name(number))}


def group_name(gid: int) -> str:
    """Returns the name of a group, empty where it has none."""
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return ""


def group_number(name: str) -> int:
    """Returns the number of a group named by name or number. Raises KeyError when there is none of this name."""
    return int(name) if name.isdecimal() else grp.getgrnam(name).gr_gid

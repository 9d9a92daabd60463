"""Where a queue manager's files lie: data, socket, and what the product ships. Standard library only.

Everything that has to agree on a path (daemon, client, monitor, command line) asks here. What belongs in this file
is the rule for a path, never the making of a file.

========  ===========================================================================================
data      ``--data``, else ``$TRIGMON_HOME/NAME``, else below systemd's ``$STATE_DIRECTORY`` (a service:
          ``/var/lib/trigmon/NAME``), else ``$XDG_STATE_HOME/trigmon/NAME``
socket    ``NAME/mq.sock`` in the runtime directory, a directory a queue manager: its mode decides who connects
runtime   ``$TRIGMON_RUNTIME``, else ``$TRIGMON_HOME/.run``, else systemd's ``$RUNTIME_DIRECTORY``
          (``/run/trigmon``), else ``$XDG_RUNTIME_DIR/trigmon``, else ``/run/trigmon`` for root and
          ``/tmp/trigmon-UID`` for others
default   ``$XDG_CONFIG_HOME/trigmon/qmgr``, else ``~/.config/trigmon/qmgr``: the name that ``trigmon use`` has written
========  ===========================================================================================
"""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

DEFAULT_QMGR = "QM1"
"""The queue manager that is meant when nobody names one and none runs."""

SOCKET_NAME = "mq.sock"

MAX_SOCKET_PATH = 107
"""Bytes a Unix socket's path may have: ``sun_path`` of unix(7) is 108 with its closing NUL."""

SYSTEM_RUNTIME = Path("/run/trigmon")


def file_name(name: str) -> str:
    """Returns a queue manager's name as a file name: ``/`` becomes ``&``, and a leading dot becomes ``!``.

    The two characters are IBM's own for this (a file name never holds one otherwise, for no MQ name does).
    """
    safe = name.replace("/", "&")
    return "!" + safe[1:] if safe.startswith(".") else safe


def name_of(file: str) -> str:
    """Returns the queue manager's name behind a file name, the inverse of :func:`file_name`."""
    name = file.replace("&", "/")
    return "." + name[1:] if name.startswith("!") else name


def data_directory(name: str, data: str | Path | None = None) -> Path:
    """Returns the directory of a queue manager's store, which need not exist; ``data`` is the value of ``--data``."""
    if data:
        return Path(data).expanduser().absolute()
    if home := os.environ.get("TRIGMON_HOME"):
        return Path(home).expanduser().absolute() / file_name(name)
    if state := os.environ.get("STATE_DIRECTORY"):
        # systemd joins several state directories with colons; ours is the first by the units we ship.
        return Path(state.partition(":")[0]) / file_name(name)
    state_home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state_home) / "trigmon" / file_name(name)


def runtime_directory() -> Path:
    """Returns the directory in which this process makes its sockets' directories; it need not exist."""
    return next(iter(_runtime_directories()))


def socket_path(name: str) -> Path:
    """Returns the socket of the daemon of this name, started by this user from this environment."""
    return runtime_directory() / file_name(name) / SOCKET_NAME


def find_socket(name: str) -> Path:
    """Returns the socket that a client tries: in its own runtime directory first, then in the system's.

    A user's own queue manager therefore hides a service of the same name. Nothing there: where it would be. A
    directory that this user may not enter counts as one with a socket, and connecting fails with the reason.
    """
    for directory in _runtime_directories():
        path = directory / file_name(name) / SOCKET_NAME
        try:
            if stat.S_ISSOCK(path.stat().st_mode):
                return path
        except PermissionError:
            return path
        except OSError:
            continue
    return socket_path(name)


def key_group(path: str | Path) -> str:
    """Returns the group whose members may use a socket that this user may not; empty where no group helps.

    It is that of the first thing on the way to it that keeps this user out: a directory, or the socket. Root's own
    group is nobody's to join.
    """
    import grp

    path = Path(path)
    for place in (*reversed(path.parents), path):
        try:
            found = place.stat()
        except OSError:
            return ""
        wanted, bit = (os.W_OK, stat.S_IWGRP) if stat.S_ISSOCK(found.st_mode) else (os.X_OK, stat.S_IXGRP)
        if os.access(place, wanted, effective_ids=True):
            continue
        if not found.st_mode & bit or found.st_gid == 0:
            return ""
        try:
            return grp.getgrgid(found.st_gid).gr_name
        except KeyError:
            return str(found.st_gid)
    return ""


def default_qmgr_file() -> Path:
    """Returns the file with the name of the queue manager that this user means by default; it need not exist."""
    config_home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(config_home) / "trigmon" / "qmgr"


def default_qmgr() -> str:
    """Returns the queue manager that this user means by default; empty where none was chosen."""
    try:
        return default_qmgr_file().read_text().strip()
    except (OSError, RuntimeError, ValueError):  # no file, no home directory, no text
        return ""


def client_files() -> list[Path]:
    """Returns the files that say how queue managers of other machines are reached, the one that comes first first."""
    if chosen := os.environ.get("TRIGMON_CLIENT_FILE"):
        return [Path(chosen)]
    home = os.environ.get("XDG_CONFIG_HOME") or str(Path("~/.config").expanduser())
    return [Path(home, "trigmon", "client.ini"), Path("/etc/trigmon/client.ini")]


def running() -> list[str]:
    """Returns the names of the queue managers this process could reach: those whose socket takes a connection."""
    found: set[str] = set()
    for directory in _runtime_directories():
        try:
            entries = sorted(directory.iterdir())
        except OSError:
            continue
        found.update(name_of(entry.name) for entry in entries if answers(entry / SOCKET_NAME))
    return sorted(found)


def answers(path: Path, timeout_s: float = 1.0) -> bool:
    """Returns whether a process accepts connections on this Unix socket; a full backlog counts as one."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(timeout_s)
        try:
            probe.connect(str(path))
        except (TimeoutError, BlockingIOError):
            return True
        except OSError:
            return False
    return True


def shipped(what: str) -> Path:
    """Returns a directory the product ships: ``config``, ``process_defs`` or ``systemd``.

    In a wheel it lies inside the package, in a checkout beside it.
    """
    package = Path(__file__).resolve().parent
    inside = package / "shipped" / what
    return inside if inside.is_dir() else package.parent / what


def _runtime_directories() -> Iterator[Path]:
    """Yields the runtime directories, the one of this process first; an explicit one is the only one."""
    environ = os.environ
    if runtime := environ.get("TRIGMON_RUNTIME"):
        yield Path(runtime).expanduser().absolute()
        return
    if home := environ.get("TRIGMON_HOME"):
        # No queue manager's file name begins with a dot, so this is nobody's data.
        yield Path(home).expanduser().absolute() / ".run"
        return
    if service := environ.get("RUNTIME_DIRECTORY"):
        yield Path(service.partition(":")[0])
    if session := environ.get("XDG_RUNTIME_DIR"):
        yield Path(session) / "trigmon"
    uid = os.getuid()
    if uid != 0 and _is_ours(temporary := Path(f"/tmp/trigmon-{uid}"), uid):  # noqa: S108 - ownership is checked
        yield temporary
    yield SYSTEM_RUNTIME


def _is_ours(directory: Path, uid: int) -> bool:
    """Returns whether nobody else made this directory: in /tmp another user could, and would see what clients send."""
    try:
        status = directory.lstat()
    except FileNotFoundError:
        return True
    return status.st_uid == uid and directory.is_dir() and not directory.is_symlink()

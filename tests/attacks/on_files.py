"""Files, sockets and processes: to read, change, replace, signal or look into what is another user's."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
from contextlib import suppress
from pathlib import Path

from tests.attacks.stage import SECRET
from tests.attacks.table import MEMBER, MONITOR, STRANGER, add
from trigmon.keeper import protocol

_libc = ctypes.CDLL(None, use_errno=True)
_PTRACE_SEIZE = 0x4206

# By name: a path below the stage's directory; {AS} and {SLEEPER} are the runs' ids, and those that only a run's own
# user reads are the monitor's business no more than anybody's.
SERVERS = {
    "the data directory": "q/QM1",
    "the lock": "q/QM1/lock",
    "the database": "q/QM1/qm.db",
    "the write-ahead log": "q/QM1/qm.db-wal",
    "the runtime lock": "q/.run/QM1/mq.sock.lock",
}
SERVERS_DIRECTORIES = {"the runtime directory": "q/.run/QM1", "the directory of sockets": "q/.run", "its home": "q"}
MONITORS = {
    "the runs directory": "m/runs",
    "a claim": "m/runs/{SLEEPER}/claim",
    "a program's output": "m/runs/{SLEEPER}/stdout",
    "a program's errors": "m/runs/{SLEEPER}/stderr",
    "a program's secret": "m/runs/{SLEEPER}/credentials/db",
    "the monitors directory": "m/monitors",
    "the keeper's log": "m/monitors/SYSTEM.DEFAULT.INITIATION.QUEUE.1.keeper.log",
    "the source of the secrets": "secrets/db",
}
RUNAS = {
    "the errors of a RUNAS program": "m/runs/{AS}/stderr",
    "the secret of a RUNAS program": "m/runs/{AS}/credentials/db",
}
ROOTS = {"the list of RUNAS users": "users", "the program of a definition": "bin/sleeper"}


def _path(place, path):
    return place.home / path.format(**{name: run["run_id"] for name, run in place.runs.items()})


def _read(place, path):
    where = _path(place, path)
    return sorted(where.iterdir()) if where.is_dir() else [where.read_bytes()]


def _write(place, path):
    where = _path(place, path)
    if where.is_dir():
        (where / "planted").write_text("x")
    else:
        os.close(os.open(where, os.O_WRONLY | os.O_APPEND))
    return True


def _replace(place, path):
    where = _path(place, path)
    where.rename(where.with_name("moved"))
    return True


def _link(place, path):
    where = _path(place, path)
    where.unlink()
    where.symlink_to("/dev/null")
    return True


OPERATIONS = {
    "read": (_read, "it is read"),
    "write": (_write, "it is written, or something made in it"),
    "rename": (_replace, "it has another name"),
    "relink": (_link, "a symbolic link is in its place"),
}


def _on(files, who, operations):
    for what, path in files.items():
        for name in operations:
            attempt, success = OPERATIONS[name]
            add(f"{name}-{path}", who, f"{name} {what}", success, lambda place, _, a=attempt, p=path: a(place, p))


for _who in (STRANGER, MEMBER, MONITOR):
    _on(SERVERS, _who, OPERATIONS)
    _on(SERVERS_DIRECTORIES, _who, ["write", "rename"])
    _on(ROOTS, _who, ["write", "rename", "relink"])
    add(
        "replace-socket",
        _who,
        "put a socket of one's own in the place of the queue manager's",
        "clients come to the attacker",
        lambda place, _: (place.socket.unlink(), socket.socket(socket.AF_UNIX).bind(str(place.socket)), True)[-1],
    )
for _who in (STRANGER, MEMBER):
    _on(MONITORS | RUNAS, _who, OPERATIONS)
_on({"the secret of a RUNAS program": RUNAS["the secret of a RUNAS program"]}, MONITOR, ["read", "write"])


def _plain_socket(place, _):
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(str(place.socket))
    return True


add("connect", STRANGER, "connect to the socket", "the connection is made", _plain_socket)
add("hello", STRANGER, "say hello on the socket", "a welcome", lambda place, _: place.connect())


# -- the keeper's socket --------------------------------------------------------------------------------------

_KEEPER = "SYSTEM.DEFAULT.INITIATION.QUEUE.1.keeper"


def _keeper(place):
    link = protocol.connected(place.home / "m" / "monitors", _KEEPER)
    assert link is not None, "the keeper does not listen"
    link.settimeout(10)
    return link


def _ask_keeper(place, name, user, environment=None):
    """Asks for a program as another user, and waits for what the keeper says of it."""
    run = f"f{os.getpid():015x}{name}"
    order = {"argv": ["/usr/bin/touch", str(place.marks / name)], "environment": environment or {}}
    order |= {"working_directory": "/", "directory": str(place.home / "m" / "runs" / run), "user": user}
    with _keeper(place) as link:
        link.sendall(protocol.line("start", run=run, time_limit_s=0, grace_s=1, may_change_users=True, **order))
        said, lines = [], protocol.Lines()
        while not any(one.get("run") == run and one["say"] in ("ended", "failed") for one in said):
            said += lines.feed(link.recv(1 << 16))
    return [one["say"] for one in said if one.get("run") == run]


for _who in (STRANGER, MEMBER):
    add("keeper", _who, "connect to the keeper's socket", "it answers", lambda place, _: bool(_keeper(place)))
for _name, _user in {
    "nobody": {"name": "nobody", "uid": 65534, "gid": 65534, "groups": []},
    "root": {"name": "root", "uid": 0, "gid": 0, "groups": []},
    "daemon": {"name": "daemon", "uid": 1, "gid": 1, "groups": [0]},
    "server": {"name": "nobody", "uid": 0, "gid": 65534, "groups": []},
}.items():
    add(
        f"keeper-as-{_name}",
        MONITOR,
        f"ask the keeper for a program as {_name}, saying that one may change users",
        "the program runs as that user",
        lambda place, _, n=_name, u=_user: _ask_keeper(place, f"keeper.{n}", u),
        lambda stage, said, _, n=_name: (stage.home / "marks" / f"keeper.{n}").exists(),
    )


# -- processes ------------------------------------------------------------------------------------------------


def _signal(place, which):
    os.kill(place.pids[which], signal.SIGURG)  # nobody minds it, and it takes the same right as SIGKILL
    return True


def _trace(place, which):
    if _libc.ptrace(_PTRACE_SEIZE, place.pids[which], 0, 0):
        raise OSError(ctypes.get_errno(), "ptrace")
    return True


def _look(place, which, file):
    path = Path(f"/proc/{place.pids[which]}") / file
    if file == "cwd":
        return path.readlink()
    if file == "fd":
        return list(path.iterdir())
    with path.open("rb") as opened:
        return file == "mem" or opened.read(1 << 16)


def _on_processes(who, processes, files, *, signals=True):
    for which in processes:
        if signals:
            add(f"signal-{which}", who, f"send the {which} a signal", "it is sent", lambda p, _, w=which: _signal(p, w))
        add(f"ptrace-{which}", who, f"trace the {which}", "it is traced", lambda p, _, w=which: _trace(p, w))
        for file in files:
            tries = f"look into /proc/PID/{file} of the {which}"
            add(f"{file}-{which}", who, tries, "it is seen", lambda p, _, w=which, f=file: _look(p, w, f))


_FILES = ("environ", "mem", "fd", "cwd", "maps")
for _who in (STRANGER, MEMBER):
    _on_processes(_who, ("daemon", "monitor", "keeper", "program", "RUNAS program"), _FILES)
_on_processes(MONITOR, ("daemon", "RUNAS program"), _FILES)
# It may end its own monitor; but whoever looks into it, or traces it, has its rights.
_on_processes(MONITOR, ("monitor", "keeper"), _FILES, signals=False)


def _secret_anywhere(place, _):
    """Every file that can be read below the stage's directory."""
    found = []
    for directory, _, files in os.walk(place.home):
        for path in (Path(directory, file) for file in files):
            with suppress(OSError):
                found += [path] if SECRET.encode() in path.read_bytes() else []
    return found


for _who in (STRANGER, MEMBER):
    add("secrets", _who, "read every file that can be read", "a secret is in one of them", _secret_anywhere)

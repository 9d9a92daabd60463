"""A run as a transient unit of systemd: its name, its properties, and what its state means. Pure.

=====================================  ======================================================================
the run                                the unit
=====================================  ======================================================================
the program, its arguments             ``ExecStartEx``, its arguments as they are (no ``$`` is expanded)
that the program could be executed     ``Type=exec``: the start's job is done when it could
its environment                        ``EnvironmentFile``, for its owner alone: what ``Environment`` holds,
                                       every user of the machine may read
its output                             appended to the files of its directory, so that ``trigmon runs logs``
                                       is the same for every back end; of its file mode mask others get nothing
its end                                ``RemainAfterExit`` and ``CollectMode=inactive``: the unit stays until
                                       its exit is written, so that it outlives monitor and keeper
its time limit, its grace              ``RuntimeMaxSec``, ``TimeoutStopSec``
all that it made                       ``KillMode=control-group``: no process leaves the run
memory                                 ``MemoryMax``, with ``MemorySwapMax=0``: of all its processes together
processor time, open files             ``LimitCPU``, ``LimitNOFILE``: of each process, as without systemd
the user it runs as                    ``User``
secrets                                ``LoadCredential``
what it writes to the journal          ``LogExtraFields``: ``journalctl TRIGMON_RUN=...``; what systemd logs about
                                       it, ``journalctl -u trigmon-run-RUN``
limits of all runs together            ``Slice=trigmon.slice``, for ``systemctl edit``
=====================================  ======================================================================

Sources: systemd.service(5), systemd.exec(5), systemd.resource-control(5), org.freedesktop.systemd1(5).
Standard library only: the keeper imports it.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping
from typing import Any

from trigmon.keeper import protocol
from trigmon.keeper.run_directory import STDERR, STDOUT

PATTERN = "trigmon-run-*.service"
SLICE = "trigmon.slice"
ENVIRONMENT = "environment"
"""The file in the run's directory that systemd reads the program's variables from."""

State = dict[str, Any]
"""Properties of a unit by systemd's names, as far as they are known."""

ENDED = ("exited", "failed", "dead")
"""Values of ``SubState`` in which the unit's program does not run."""

_FOREVER = (1 << 64) - 1
_SECOND = 1_000_000
_MIB = 1 << 20
_MORE_CPU_S = 5
_EXITED = 1
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Statuses that say what systemd could not do before it executed the program: systemd.exec(5), "Process Exit Codes".
_COULD_NOT = {
    200: "its working directory cannot be entered",
    203: "the program cannot be executed",
    205: "a limit cannot be set",
    209: "its output file cannot be opened",
    216: "its group cannot be taken on",
    217: "its user cannot be taken on: is there one of this name?",
    243: "its secrets cannot be read",
}


def name_of(run_id: str) -> str:
    """Returns the unit name of a run."""
    return f"trigmon-run-{run_id}.service"


def run_of(unit: str) -> str:
    """Returns the run of a unit; "" when it is none of ours."""
    found = re.fullmatch(r"trigmon-run-([0-9A-Za-z]+)\.service", unit)
    return found[1] if found else ""


def object_path(unit: str) -> str:
    """Returns a unit's D-Bus object path: every byte but letters and digits is escaped."""
    escaped = "".join(c if c.isascii() and c.isalnum() else f"_{ord(c):02x}" for c in unit)
    return f"/org/freedesktop/systemd1/unit/{escaped}"


def properties(order: protocol.Message) -> list[tuple[str, tuple[str, Any]]]:
    """Returns the properties that StartTransientUnit gets for a ``start`` order: names with D-Bus variants.

    Raises ValueError for a text that D-Bus cannot carry.
    """
    run_id, directory = str(order["run"]), str(order["directory"])
    argv = [_text(word, "an argument") for word in order["argv"]]
    environment = order["environment"]
    queue, process = environment.get("TRIGMON_QNAME", ""), environment.get("TRIGMON_PROCESS", "")
    fields = {"TRIGMON_RUN": run_id, "TRIGMON_QUEUE": queue, "TRIGMON_PROCESS": process}
    found: list[tuple[str, tuple[str, Any]]] = [
        ("Description", ("s", f"trigmon run {run_id}: {process or argv[0]} for {queue or 'no queue'}")),
        ("Type", ("s", "exec")),
        ("ExecStartEx", ("a(sasas)", [(argv[0], argv, ["no-env-expand"])])),
        ("EnvironmentFiles", ("a(sb)", [(f"{directory}/{ENVIRONMENT}", False)])),
        ("WorkingDirectory", ("s", _text(order["working_directory"], "the working directory"))),
        ("StandardOutputFileToAppend", ("s", f"{directory}/{STDOUT}")),
        ("StandardErrorFileToAppend", ("s", f"{directory}/{STDERR}")),
        ("SyslogIdentifier", ("s", f"trigmon-run-{run_id}")),
        ("LogExtraFields", ("aay", [f"{name}={value}".encode() for name, value in fields.items() if value])),
        ("UMask", ("u", 0o077)),
        ("IgnoreSIGPIPE", ("b", False)),
        ("NoNewPrivileges", ("b", True)),
        ("Slice", ("s", SLICE)),
        ("KillMode", ("s", "control-group")),
        ("TimeoutStopUSec", ("t", _usec(order["grace_s"]))),
        ("RemainAfterExit", ("b", True)),
        ("CollectMode", ("s", "inactive")),
    ]
    if order["time_limit_s"]:
        found.append(("RuntimeMaxUSec", ("t", _usec(order["time_limit_s"]))))
    return found + _limits(order)


def _limits(order: protocol.Message) -> list[tuple[str, tuple[str, Any]]]:
    found: list[tuple[str, tuple[str, Any]]] = []
    limits = order.get("limits") or {}
    if memory := limits.get("memory_mib"):
        found += [("MemoryMax", ("t", int(memory) * _MIB)), ("MemorySwapMax", ("t", 0))]
    if cpu := limits.get("cpu_s"):
        # SIGXCPU at the limit, as without systemd, and a program that ignores it is killed a little later.
        found += [("LimitCPU", ("t", int(cpu) + _MORE_CPU_S)), ("LimitCPUSoft", ("t", int(cpu)))]
    if files := limits.get("open_files"):
        found += [("LimitNOFILE", ("t", int(files))), ("LimitNOFILESoft", ("t", int(files)))]
    if user := order.get("user"):
        found.append(("User", ("s", _text(user["name"], "the user"))))
    if secrets := order.get("secrets"):
        found.append(("LoadCredential", ("a(ss)", [(name, str(path)) for name, path in secrets.items()])))
    return found


def environment_file(environment: Mapping[str, str]) -> bytes:
    """Returns the variables as systemd.exec(5) reads them from an EnvironmentFile.

    What is no variable of a shell (an exported function of bash) or no UTF-8 is left out: systemd would refuse all.
    """
    lines = []
    for name, value in environment.items():
        try:
            raw = value.encode()
        except UnicodeEncodeError:
            continue
        if _VARIABLE.fullmatch(name):
            lines.append(name.encode() + b'="' + re.sub(rb'(["\\`$])', rb"\\\1", raw) + b'"\n')
    return b"".join(lines)


def why_not_executed(state: State) -> str:
    """Returns why a unit whose start failed has no program; "" when it had one, which ended while systemd was looking.

    Only a status can tell, so a program that ends at once with one of systemd's own, 200 to 243, counts as none.
    """
    status = int(state.get("ExecMainStatus", 0))
    if state.get("ExecMainCode") == _EXITED and status in _COULD_NOT:
        return f"systemd: {_COULD_NOT[status]} ({status})"
    if not state.get("ExecMainCode"):
        return f"systemd could not start it ({state.get('Result') or 'no result'}): see journalctl"
    return ""


def exit_fields(state: State) -> dict[str, Any]:
    """Returns the exit in the fields of :mod:`trigmon.keeper.run_directory`: all but ``run``, ``why`` if systemd knows.

    ``end_ms`` is 0 when it is not known.
    """
    status = int(state.get("ExecMainStatus", 0))
    limit = int(state.get("RuntimeMaxUSec", _FOREVER))
    lasted = int(state.get("ExecMainExitTimestamp", 0)) - int(state.get("ExecMainStartTimestamp", 0))
    why = protocol.OUT_OF_MEMORY if state.get("Result") == "oom-kill" else ""
    if state.get("Result") == "timeout" and lasted >= limit:  # a stop that took too long is one as well
        why = protocol.TIME_LIMIT
    cpu = int(state.get("LimitCPUSoft", _FOREVER))
    if cpu != _FOREVER and state.get("ExecMainCode") != _EXITED and status == signal.SIGXCPU:
        why = protocol.cpu_limit(cpu)
    return {
        "pid": int(state.get("ExecMainPID", 0)),
        "start_ms": start_ms(state),
        "end_ms": int(state.get("ExecMainExitTimestamp", 0)) // 1000,
        "status": status if state.get("ExecMainCode") == _EXITED else -status,
        "why": why,
        "limit_s": 0.0 if limit == _FOREVER else limit / _SECOND,
    }


def has_ended(state: State) -> bool:
    """Returns whether systemd knows how its program ended."""
    return state.get("SubState") in ENDED and bool(state.get("ExecMainCode"))


def start_ms(state: State) -> int:
    """Returns when its program was started, milliseconds since 1970."""
    return int(state.get("ExecMainStartTimestamp", 0)) // 1000


def argv(state: State) -> list[str]:
    """Returns the arguments it was started with; none when they are not known."""
    commands = state.get("ExecStartEx")
    return list(commands[0][1]) if commands else []


def grace_s(state: State) -> float:
    """Returns the seconds between SIGTERM and SIGKILL."""
    return int(state.get("TimeoutStopUSec", 0)) / _SECOND


def _usec(seconds: float) -> int:
    return max(1, round(float(seconds) * _SECOND))  # 0 would mean: no limit


def _text(value: str, what: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{what} is not UTF-8, which systemd requires: {value!r}") from None
    return value

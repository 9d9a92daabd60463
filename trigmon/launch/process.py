"""APPLTYPE UNIX: a program and its words, and how any planned program becomes a process.

IBM's monitor hands ``APPLICID "MQTMC2" ENVRDATA`` to a shell. The same words in the same order are made here, but
executed directly, so no character of a trigger message can become a command.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from trigmon.launch import words
from trigmon.launch.port import STDERR, STDOUT, LaunchError, LaunchPlan, Order
from trigmon.mq.descriptors import pack_tmc2
from trigmon.rules.programs import has_placeholder

# A service manager's own wires to the monitor: a started program that wrote to them would speak in its name.
_NOT_INHERITED = ("NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES")
_TAIL = 8192


def arguments(order: Order) -> list[str]:
    """The argument list as the definition says it, the program's name not yet looked up.

    APPLICID's words, then the MQTMC2 as one element unless a placeholder is used anywhere, then ENVRDATA's words.
    Pure. Raises LaunchError.
    """
    words.check_characters(order)
    program = words.split_words(order.trigger.appl_id, "APPLICID")
    if not program:
        raise LaunchError("APPLICID is blank: there is no program to start")
    if has_placeholder(program[:1]):
        raise LaunchError(f"the program itself may not be a placeholder: {program[0]}")
    after = words.environment_words(order.trigger.env_data)
    if has_placeholder(program + after):
        return words.filled(program + after, order)
    return [*program, pack_tmc2(order.trigger, order.q_mgr_name), *after]


def find_program(name: str, working_directory: str, path: str | None = None) -> str:
    """The file that ``name`` means: in the definition's directory, else (without a slash) on PATH.

    Raises LaunchError saying whether it is missing or merely not executable.
    """
    beside = Path(working_directory or ".", name)
    if (working_directory or "/" in name) and beside.is_file():
        if os.access(beside, os.X_OK):
            return str(beside.absolute())
        raise LaunchError(f"{beside} is not executable (chmod +x, and a script needs its #! line)")
    found = shutil.which(name, path=path) if "/" not in name else None
    if found is None:
        raise LaunchError(f"no program {beside}" if "/" in name else f"no program {name} on PATH")
    return str(Path(found).absolute())


class ProcessLauncher:
    """Plans APPLTYPE UNIX."""

    errors = (STDERR,)

    def plan(self, order: Order) -> LaunchPlan:
        """See :class:`~trigmon.launch.port.Launcher`."""
        program, *rest = arguments(order)
        directory = order.process.working_directory
        return LaunchPlan(
            argv=[find_program(program, directory), *rest],
            environment=words.environment(order),
            working_directory=directory,
        )


def start(plan: LaunchPlan, run_directory: Path) -> subprocess.Popen[bytes]:
    """Executes the plan in a session of its own; its output goes to two files in ``run_directory``, made here.

    The directory doubles as a claim: it must not exist yet, so no run is ever started twice (FileExistsError).
    Raises OSError when the program cannot be executed.
    """
    run_directory.mkdir(mode=0o700, parents=True)
    inherited = {name: value for name, value in os.environ.items() if name not in _NOT_INHERITED}
    with (run_directory / STDOUT).open("xb") as out, (run_directory / STDERR).open("xb") as err:
        return subprocess.Popen(
            plan.argv,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            cwd=plan.working_directory or None,
            env=inherited | plan.environment,
            start_new_session=True,
        )


def tail(run_directory: Path, names: tuple[str, ...], limit: int = _TAIL) -> str:
    """The last ``limit`` bytes of a run's output files together, as text, each from the start of a line."""
    return "".join(_tail(run_directory / name, limit // len(names)) for name in names)


def _tail(path: Path, limit: int) -> str:
    try:
        with path.open("rb") as file:
            length = file.seek(0, os.SEEK_END)
            file.seek(max(0, length - limit))
            raw = file.read()
    except OSError:
        return ""
    if length > limit:
        raw = raw[raw.find(b"\n") + 1 :]
    return raw.decode(errors="replace")

"""APPLTYPE UNIX: plans the command line of a program, its environment, and reads its error and its output.

IBM's monitor hands ``APPLICID "MQTMC2" ENVRDATA`` to a shell. The same words in the same order are made here, but
executed directly, so no character of a trigger message can be run as a command.
"""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

from msgspec.structs import replace

from trigmon.launch import arguments as words
from trigmon.launch.environment import inherited
from trigmon.launch.launch_plan import STDERR, LaunchError, LaunchPlan, Lead, Order
from trigmon.launch.permissions import Grants
from trigmon.mq.attributes import Process
from trigmon.rules.runs import check_program
from trigmon.rules.runs.python_words import program_at
from trigmon.rules.runs.shell_text import PARAMETERS, script

_TAIL = 8192
# What a program needs to connect and to open a queue.
_ALWAYS_WARM = ("trigmon.client.address", "trigmon.client.reconnectable", "trigmon.client.triggered")


def arguments(order: Order) -> list[str]:
    """Returns the argument list of the definition; the program's name is not looked up yet.

    APPLICID's words, then the MQTMC2 as one element unless a placeholder is used anywhere or TMCARG(NO), then
    ENVRDATA's words. With SHELL(YES) a shell is given the text. Pure. Raises LaunchError.
    """
    words.check_characters(order)
    program = words.split_words(order.trigger.appl_id, "APPLICID")
    if not program or not program[0]:
        raise LaunchError("APPLICID is blank: there is no program to start")
    if check_program.has_placeholder(program[:1]):
        raise LaunchError(f"the program itself may not be a placeholder: {program[0]}")
    if order.process.shell:
        return _by_shell(order)
    whole = check_program.template(order.process, program, words.environment_words(order.trigger.env_data))
    if wrong := check_program.run_from_outside(whole):
        raise LaunchError(f"APPLICID and ENVRDATA must be {wrong}")
    return words.filled(whole, order)


def _by_shell(order: Order) -> list[str]:
    """Returns the words that run the definition's own text by a shell, with what comes from outside behind it."""
    process = replace(order.process, appl_id=order.trigger.appl_id, env_data=order.trigger.env_data)
    for name, wanted in check_program.faults(process):
        if name in ("appl_id", "env_data"):
            raise LaunchError(f"{name} must be {wanted}")
    values = words.fillings(order)
    parameters = PARAMETERS if process.tmc_argument else PARAMETERS[:-1]
    return ["/bin/sh", "-c", script(process), "sh", *(values[name] for name in parameters)]


def find_program(name: str, working_directory: str, path: str | None = None) -> str:
    """Returns the file that ``name`` means: in the definition's directory, else (without a slash) on PATH.

    Raises LaunchError saying whether it is missing, or a directory, or not executable, or lacks its interpreter.
    """
    beside = Path(working_directory or ".", name)
    if "/" in name and beside.is_dir():
        raise LaunchError(f"{beside} is a directory, not a program")
    if (working_directory or "/" in name) and beside.is_file():
        if os.access(beside, os.X_OK):
            _check_interpreter(beside)
            return str(beside.absolute())
        raise LaunchError(f"{beside} is not executable (chmod +x, and a script needs its #! line)")
    found = shutil.which(name, path=path) if "/" not in name else None
    if found is None:
        raise LaunchError(f"no program {beside}" if "/" in name else f"no program {name} on PATH")
    return str(Path(found).absolute())


def _check_interpreter(script: Path) -> None:
    """Raises LaunchError when the file begins with a ``#!`` line that names what is not there."""
    try:
        with script.open("rb") as file:
            first = file.readline(256)
    except OSError:
        return  # it may be executed and not read
    words = first[2:].split() if first.startswith(b"#!") else []
    if words and not Path(os.fsdecode(words[0])).exists():
        end = " (the line ends in a carriage return)" if first.endswith(b"\r\n") else ""
        raise LaunchError(f"{script} names the interpreter {os.fsdecode(words[0])} in its #! line: it is missing{end}")


class ProcessLauncher:
    """Plans APPLTYPE UNIX; ``grants`` is what the administrator lets a definition ask for."""

    errors = (STDERR,)

    def __init__(self, grants: Grants = Grants()) -> None:  # noqa: B008 - it never changes
        self._grants = grants

    def plan(self, order: Order) -> LaunchPlan:
        """See :class:`~trigmon.launch.launch_plan.Launcher`."""
        program, *rest = arguments(order)
        directory = order.process.working_directory
        variables = self._variables(order.process)
        plan = LaunchPlan(
            argv=[find_program(program, directory, variables.get("PATH")), *rest],
            environment=variables | words.environment(order),
            working_directory=directory,
        )
        return self._grants.completed(_warm(plan, order.process), order.process)

    def _variables(self, process: Process) -> dict[str, str]:
        """Returns the variables of the definition, with those of its virtual environment. Raises LaunchError."""
        variables = words.variables(process)
        if not process.virtualenv:
            return variables
        programs = os.path.join(process.virtualenv, "bin")  # noqa: PTH118 - a text, as it is passed on
        if not os.path.isdir(programs):  # noqa: PTH112 - False where the monitor may not look
            raise LaunchError(
                f"VIRTENV({process.virtualenv}) is no virtual environment: there is no directory {programs}"
            )
        path = (self._grants.variables() | variables).get("PATH") or os.environ.get("PATH", os.defpath)
        return variables | {"VIRTUAL_ENV": process.virtualenv, "PATH": f"{programs}{os.pathsep}{path}"}

    def record_fields(self, order: Order, directory: Path) -> dict[str, str]:
        """Returns nothing: the output of a program is not read."""
        return {}

    def lead(self, order: Order, directory: Path, pid: int) -> Lead | None:
        """Returns None: the progress of a plain program cannot be followed."""
        return None

    def again(self, order: Order, directory: Path, *, ends: bool) -> LaunchPlan | None:
        """Returns None: a program leaves no work beside its process."""
        return None

    def tend(self) -> None:
        """Returns at once: there is nothing to do."""


def _warm(plan: LaunchPlan, process: Process) -> LaunchPlan:
    """Returns the plan with the warm interpreter that the definition asks for."""
    at = program_at(plan.argv) if process.warm_interpreter and not process.shell else 0
    if not at:
        return plan
    modules = [*_ALWAYS_WARM, *process.warm_modules.split()]
    return replace(plan, interpreter=plan.argv[:at], fork=plan.argv[at:], modules=modules)


def environment(plan: LaunchPlan) -> dict[str, str]:
    """Returns the whole environment of a planned program."""
    return inherited(os.environ, is_another_users=bool(plan.user)) | plan.environment


def why_not(number: int, program: str, directory: str) -> str:
    """Returns the meaning of the errno by which the kernel refused to execute a program.

    ``directory`` is its working directory ("": the monitor's own).
    """
    text = os.strerror(number)
    if directory and not Path(directory).is_dir():
        return f"the working directory {directory} is not there"
    if number == errno.ENOEXEC:
        return f"{program} is neither a program of this machine nor a script: it has no #! line ({text})"
    return f"{program} cannot be executed: {text}"


def tail(run_directory: Path, names: tuple[str, ...], limit: int = _TAIL) -> str:
    """Returns the last ``limit`` bytes of a run's output files together, as text, each from the start of a line."""
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

"""``trigmon lint``: checks definitions, of a queue manager or in files, for risks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trigmon import files
from trigmon.cli.command import command, invocation
from trigmon.mq.quantities import counted
from trigmon.mq.reasons import Reason
from trigmon.mq.shortening import shortened

if TYPE_CHECKING:
    from trigmon.rules.lint import Finding

CLEAN, FINDINGS, CANNOT = 0, 1, 2
YAML = (".yaml", ".yml")
MQSC = ".mqsc"

Row = dict[str, Any]
Ask = Callable[[Any], Any]
Places = dict[tuple[str, str], str]
"""Where the files name an object, by its type and name; the queue manager's name is empty."""


class LoadError(ValueError):
    """Nothing that can be linted. The text has a line for each file."""

    def __init__(self, text: str) -> None:
        super().__init__("\n".join(map(shortened, text.splitlines())))


@dataclass
class Loaded:
    """What files define: a queue manager's objects, their places, what was wrong with its place, and which files."""

    rows: list[Row] = field(default_factory=list)
    places: Places = field(default_factory=dict)
    faults: list[tuple[str, Finding]] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)

    def place(self, one: Finding) -> str:
        """Returns where the object of a finding is defined."""
        return self.places.get((one.object_type, "" if one.object_type == "QMGR" else one.name), "")

    def note(self, where: str, found: str, object_type: str = "definition", name: str = "") -> None:
        """Notes what is wrong at a place."""
        from trigmon.rules.lint import not_loaded

        found = shortened(found.encode(errors="backslashreplace").decode())
        self.faults.append((where, not_loaded(object_type, name, found)))


@command(
    "lint",
    "trigmon lint\ntrigmon lint config/queues.yaml process_defs\ntrigmon lint dump.mqsc --ignore no-dead-letter-queue",
)
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=click.Path(path_type=Path))
@click.option("--ignore", multiple=True, metavar="RULE", help="Leave a rule out, by its name; may be given repeatedly.")
@click.pass_context
def lint(ctx: click.Context, paths: tuple[Path, ...], ignore: tuple[str, ...]) -> None:
    """Find definitions that are valid but risky, and show the risk and the remedy of each.

    Without a PATH the running queue manager is checked. A PATH is a definition file (YAML), a file of MQSC, or a
    directory of them (*.yaml, *.mqsc); they are checked as one new queue manager that has loaded them all. What is
    wrong in them is a finding, and the rest is checked. Exit 0 when nothing was found, 1 when something was, 2 when a
    file cannot be read or no queue manager answers.
    """
    from trigmon.cli import output
    from trigmon.cli.errors import exit_for
    from trigmon.rules import lint as rules

    _check_rules(ignore, [*map(rules.name_of, rules.RULES), rules.WATCH_HINDERED, rules.NOT_LOADED])
    try:
        loaded = _from_files(paths) if paths else Loaded(_from_queue_manager())
    except Exception as error:
        code, lines = (CANNOT, str(error).splitlines()) if isinstance(error, LoadError) else exit_for(error)
        if code is None:
            raise
        for line in lines:
            output.note(f"trigmon: {line}")
        ctx.exit(CANNOT)
    rows = loaded.rows
    found = [*loaded.faults, *((loaded.place(one), one) for one in rules.lint(rules.definitions(rows)))]
    found += [("", one) for one in rules.reported(rows)]
    found = [(where, one) for where, one in found if one.rule not in ignore]
    for where, one in found:
        _print(one, where)
    for line in loaded.unreadable:
        output.note(f"trigmon: {line}")
    summary = counted(len(found), "finding") if found else "nothing found"
    count = sum(not row["name"].startswith("SYSTEM.") for row in rows)
    output.note(f"{summary} in {count} object{'s' * (count != 1)}")
    ctx.exit(CANNOT if loaded.unreadable else FINDINGS if found else CLEAN)


def _check_rules(given: Iterable[str], known: Sequence[str]) -> None:
    from trigmon.cli.command import nearest

    for name in given:
        if name not in known:
            raise click.UsageError(f"there is no rule {name!r}{nearest(name, known)}; they are {', '.join(known)}")


def _from_queue_manager() -> list[Row]:
    from trigmon.cli.objects import rows
    from trigmon.mq.attributes import EVERY_TYPE

    with invocation().connected() as qm:
        return [row for kind in EVERY_TYPE for row in rows(qm, kind)]


def _from_files(paths: Sequence[Path]) -> Loaded:
    """Returns the objects of a new queue manager that has loaded the files: definition files first, then MQSC files.

    What is wrong in a file is noted, and the rest is loaded. Raises LoadError where no file can be read.
    """
    from trigmon.definitions.definition_files import read_what_can_be
    from trigmon.mq.attributes import EVERY_TYPE
    from trigmon.mq.calls import Display
    from trigmon.mq.paging import all_rows
    from trigmon.simulate.in_process import InProcess

    files = [file for path in paths for file in _files(path)]
    read = read_what_can_be(file for file in files if file.suffix in YAML)
    loaded = Loaded(unreadable=read.unreadable)
    for problem in read.problems:
        if problem not in read.unreadable:
            where, _, about = problem.partition(": ")
            loaded.note(where, about)
    name = next((one.name for one in read.wanted if one.object_type == "QMGR" and one.name), "QM1")
    # The files do not state whether they are for a member of a group, so shared objects must load.
    stage = InProcess((name,), "memory", in_group=True)

    def ask(call: Any) -> Any:
        return stage.command(name, call)

    try:
        _load_wanted(ask, read.wanted, loaded)
        for file in files:
            if file.suffix not in YAML:
                _load_mqsc(ask, file, loaded)
        if len(loaded.unreadable) == len(files):
            raise LoadError("\n".join(loaded.unreadable))
        loaded.rows = [row for kind in EVERY_TYPE for row in all_rows(ask, Display(object_type=kind))]
        return loaded
    finally:
        stage.close()


def _files(path: Path) -> list[Path]:
    from trigmon.definitions.definition_files import SETTINGS_FILE

    if not path.is_dir():
        return [path]
    found = sorted(p for p in path.iterdir() if p.suffix in (*YAML, MQSC) and p.name != SETTINGS_FILE)
    if not found:
        raise LoadError(f"{path}: the directory holds no definition file (*.yaml, *.mqsc)")
    return found


def _load_wanted(ask: Ask, wanted: Sequence[Any], loaded: Loaded) -> None:
    """Defines what definition files want, and notes the places."""
    from trigmon.definitions.apply_plan import plan
    from trigmon.definitions.definition_files import DefinitionError
    from trigmon.mq.attributes import EVERY_TYPE
    from trigmon.mq.calls import Display
    from trigmon.mq.errors import MQError
    from trigmon.mq.paging import all_rows

    existing = [row for kind in EVERY_TYPE for row in all_rows(ask, Display(object_type=kind))]
    faulty = {where for where, _ in loaded.faults}
    for one in wanted:
        if one.where in faulty:
            continue  # a name that stood before, which is noted
        try:
            for step in plan([one], existing):
                ask(step.call)
            loaded.places.setdefault((one.object_type, "" if one.object_type == "QMGR" else one.name), one.where)
        except DefinitionError as error:
            for problem in error.problems:
                loaded.note(one.where, problem.removeprefix(f"{one.where}: "), one.object_type, one.name)
        except MQError as error:
            loaded.note(one.where, str(error), one.object_type, one.name)


def _load_mqsc(ask: Ask, file: Path, loaded: Loaded) -> None:
    """Loads a script, and notes the places of its definitions. What trigmon does not have is named and left out."""
    from trigmon.cli import output
    from trigmon.mq.calls import Alter, Define, Delete
    from trigmon.mq.errors import FunctionNotSupported, MQError
    from trigmon.mqsc.commands import read_script

    try:
        # Bytes that are no UTF-8 are a fault of their command.
        text = files.read(file).decode(errors="surrogateescape")
    except OSError as error:
        loaded.unreadable.append(f"{file}: it cannot be read: {error.strerror}")
        return
    for read in read_script(text):
        where = f"{file}:{read.line}"
        for skipped in read.skipped:
            if not skipped.is_default:
                what = f"{skipped.what} {skipped.parameter}".strip()
                output.note(f"{file}:{skipped.line}: left out: {what}: {skipped.why}")
        if isinstance(read.error, FunctionNotSupported):
            output.note(f"{where}: left out: {read.error.about}")
        elif read.error is not None:
            loaded.note(where, read.error.about, read.noun or "command", read.name)
        for call in read.calls:
            if isinstance(call, Define | Alter | Delete):
                try:
                    ask(call)
                    loaded.places.setdefault((call.object_type, call.name), where)
                except MQError as error:
                    if not (read.ignores_missing and error.reason is Reason.UNKNOWN_OBJECT_NAME):
                        loaded.note(where, str(error), call.object_type, call.name)


def _print(one: Finding, where: str) -> None:
    from trigmon.cli import output

    if invocation().is_json:
        import msgspec

        click.echo(output.json_line(msgspec.structs.asdict(one) | {"where": where}))
        return
    about = f"{one.object_type} {one.name}".strip()
    head = click.style(f"{about}: {one.rule}", fg="yellow", bold=True)
    click.echo(head + (f"  ({where})" if where else ""))
    first, *more = one.remedy.splitlines()
    lines = [f"    found   {one.found}", f"    risk    {one.risk}", f"    remedy  {first}"]
    for line in (*lines, *(f"{'':12}{line}" for line in more)):
        click.echo(line)

"""``trigmon lint``: checks definitions, of a queue manager or in files, for risks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trigmon import files
from trigmon.cli.command import command, invocation
from trigmon.mq.quantities import counted
from trigmon.mq.shortening import shortened

if TYPE_CHECKING:
    from trigmon.rules.lint import Finding
    from trigmon.simulate.in_process import InProcess

CLEAN, FINDINGS, CANNOT = 0, 1, 2
YAML = (".yaml", ".yml")
MQSC = ".mqsc"

Row = dict[str, Any]
Places = dict[tuple[str, str], str]
"""Where the files name an object, by its type and name; the queue manager's name is empty."""


class LoadError(ValueError):
    """Files that cannot be linted since they cannot be loaded. The text has a line for each mistake."""

    def __init__(self, text: str) -> None:
        super().__init__("\n".join(map(shortened, text.splitlines())))


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
    directory of them (*.yaml, *.mqsc); they are checked as one new queue manager that has loaded them all. Exit 0 when
    nothing was found, 1 when something was, 2 when files cannot be read or no queue manager answers.
    """
    from trigmon.cli import output
    from trigmon.cli.errors import exit_for
    from trigmon.rules import lint as rules

    _check_rules(ignore, [*map(rules.name_of, rules.RULES), rules.WATCH_HINDERED])
    try:
        rows, places = _from_files(paths) if paths else (_from_queue_manager(), {})
    except Exception as error:
        code, lines = (CANNOT, str(error).splitlines()) if isinstance(error, LoadError) else exit_for(error)
        if code is None:
            raise
        for line in lines:
            output.note(f"trigmon: {line}")
        ctx.exit(CANNOT)
    found = [*rules.lint(rules.definitions(rows)), *rules.reported(rows)]
    found = [one for one in found if one.rule not in ignore]
    for one in found:
        _print(one, places.get((one.object_type, "" if one.object_type == "QMGR" else one.name), ""))
    summary = counted(len(found), "finding") if found else "nothing found"
    output.note(f"{summary} in {sum(not row['name'].startswith('SYSTEM.') for row in rows)} objects")
    ctx.exit(FINDINGS if found else CLEAN)


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


def _from_files(paths: Sequence[Path]) -> tuple[list[Row], Places]:
    """Returns the objects of a new queue manager that has loaded the files: definition files first, then MQSC files.

    Raises LoadError, DefinitionError, OSError.
    """
    from trigmon.definitions.definition_files import read_files
    from trigmon.mq.paging import all_rows
    from trigmon.simulate.in_process import InProcess

    files = [file for path in paths for file in _files(path)]
    wanted = read_files(file for file in files if file.suffix in YAML)
    name = next((one.name for one in wanted if one.object_type == "QMGR" and one.name), "QM1")
    # The files do not state whether they are for a member of a group, so shared objects must load.
    stage = InProcess((name,), "memory", in_group=True)
    try:
        places = _load_wanted(stage, name, wanted)
        for file in files:
            if file.suffix not in YAML:
                places |= _load_mqsc(stage, name, file)
        from trigmon.mq.attributes import EVERY_TYPE
        from trigmon.mq.calls import Display

        def ask(call: Any) -> Any:
            return stage.command(name, call)

        return [row for kind in EVERY_TYPE for row in all_rows(ask, Display(object_type=kind))], places
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


def _load_wanted(stage: InProcess, q_mgr: str, wanted: Sequence[Any]) -> Places:
    from trigmon.definitions.apply_plan import plan
    from trigmon.mq.attributes import EVERY_TYPE
    from trigmon.mq.calls import Display
    from trigmon.mq.errors import MQError
    from trigmon.mq.replies import Listing

    existing: list[Row] = []
    for kind in EVERY_TYPE:
        listing = stage.command(q_mgr, Display(object_type=kind))
        assert isinstance(listing, Listing)
        existing += listing.rows
    for step in plan(wanted, existing):
        try:
            stage.command(q_mgr, step.call)
        except MQError as error:
            raise LoadError(f"{step.where}: {error}") from None
    return {(one.object_type, "" if one.object_type == "QMGR" else one.name): one.where for one in wanted}


def _load_mqsc(stage: InProcess, q_mgr: str, file: Path) -> Places:
    """Loads a script and returns the places of its definitions.

    What trigmon does not have is named and left out; a mistake raises LoadError.
    """
    from trigmon.cli import output
    from trigmon.mq.calls import Alter, Define, Delete
    from trigmon.mq.errors import FunctionNotSupported, MQError
    from trigmon.mqsc.commands import read_script

    places: Places = {}
    problems = []
    try:
        text = files.read(file).decode()
    except UnicodeDecodeError as error:
        raise LoadError(f"{file}: it is no text in UTF-8: {error.reason}") from None
    for read in read_script(text):
        where = f"{file}:{read.line}"
        for skipped in read.skipped:
            if not skipped.is_default:
                what = f"{skipped.what} {skipped.parameter}".strip()
                output.note(f"{file}:{skipped.line}: left out: {what}: {skipped.why}")
        if isinstance(read.error, FunctionNotSupported):
            output.note(f"{where}: left out: {read.error.about}")
        elif read.error is not None:
            problems.append(f"{where}: {read.error.about}")
        for call in read.calls:
            if isinstance(call, Define | Alter | Delete):
                try:
                    stage.command(q_mgr, call)
                    places.setdefault((call.object_type, call.name), where)
                except MQError as error:
                    problems.append(f"{where}: {error}")
    if problems:
        raise LoadError("\n".join(problems))
    return places


def _print(one: Finding, where: str) -> None:
    from trigmon.cli import output

    if invocation().is_json:
        import msgspec

        click.echo(output.json_line(msgspec.structs.asdict(one) | {"where": where}))
        return
    head = click.style(f"{one.object_type} {one.name}: {one.rule}", fg="yellow", bold=True)
    click.echo(head + (f"  ({where})" if where else ""))
    first, *more = one.remedy.splitlines()
    lines = [f"    found   {one.found}", f"    risk    {one.risk}", f"    remedy  {first}"]
    for line in (*lines, *(f"{'':12}{line}" for line in more)):
        click.echo(line)

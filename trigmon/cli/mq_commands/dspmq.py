"""``dspmq``: the queue managers of this machine, a line each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from trigmon import paths
from trigmon.cli.mq_commands.mq_options import MqUsageError, read

DONE, DONE_ACTIVE, NO_SUCH_QMGR = 0, 5, 72
NAME_COLUMN = 58
"""Characters of QMNAME(...), with 48 for the name and two blanks behind it."""
_FIELDS = ("all", "default", "installation", "status", "standby")


def dspmq(arguments: Sequence[str]) -> int:
    """Prints the queue managers; 0, with ``-a`` 5, and 72 where ``-m`` names one that is not here.

    Raises MqUsageError.
    """
    given = read(arguments, "m:sano:")
    wanted = given.values("o") or ["status"]
    if unknown := set(wanted) - set(_FIELDS):
        raise MqUsageError(f"-o {min(unknown)}: it is one of {', '.join(_FIELDS)}")
    running = set(paths.running())
    found = sorted(running if given.has("a") else running | set(_stored()))
    if name := given.value("m"):
        found = [each for each in found if each == name]
        if not found:
            click.echo(f"AMQ7048E: The queue manager name {name} is either not valid or not known.", err=True)
            return NO_SUCH_QMGR
    for each in found:
        fields = " ".join(_fields(each, wanted, is_running=each in running))
        click.echo(f"{f'QMNAME({each})':<{NAME_COLUMN}}{fields}".rstrip())
    return DONE_ACTIVE if given.has("a") else DONE


def _fields(name: str, wanted: Sequence[str], *, is_running: bool) -> list[str]:
    import trigmon

    is_all = "all" in wanted
    fields = []
    if is_all or "status" in wanted:
        fields.append(f"STATUS({'Running' if is_running else _ended(name)})")
    if is_all or "default" in wanted:
        fields.append(f"DEFAULT({'yes' if paths.default_qmgr() == name else 'no'})")
    if is_all or "standby" in wanted:
        fields.append("STANDBY(Not permitted)")
    if is_all or "installation" in wanted:
        fields += ["INSTNAME(trigmon)", f"INSTPATH({Path(trigmon.__file__).parent})"]
        fields.append(f"INSTVER({trigmon.__version__})")
    return fields


def _ended(name: str) -> str:
    """Returns how a queue manager ended: one that ends in order removes its socket."""
    try:
        is_left = paths.find_socket(name).exists()
    except OSError:
        is_left = False
    return "Ended unexpectedly" if is_left else "Ended normally"


def _stored() -> list[str]:
    """Returns the names of the queue managers that have a store on this machine, as far as this user may see them."""
    found = []
    for place in {paths.data_directory("X").parent, Path("/var/lib/trigmon")}:
        try:
            entries = list(place.iterdir())
        except OSError:
            continue
        found += [paths.name_of(entry.name) for entry in entries if _is_store(entry)]
    return found


def _is_store(directory: Path) -> bool:
    try:
        return (directory / "qm.db").exists()
    except PermissionError:
        # A service's own directory is closed to others.
        return True
    except OSError:
        return False

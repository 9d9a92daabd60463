"""Output as tables or JSON, made from the same values.

JSON is one object a line, keys are long attribute names, instants are RFC 3339 in UTC. A table is columns divided by
blanks, without borders; a terminal gets its head in bold, below the table what does not fit
into its width, and red for what has failed (without NO_COLOR).
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import click

from trigmon.cli.command import invocation
from trigmon.cli.table_cells import short_ids, to_the_second, with_age
from trigmon.cli.table_layout import TableLayout

Row = Mapping[str, Any]


def listing(rows: Iterable[Row], columns: Sequence[str], has_failed: Callable[[Row], bool] = lambda row: False) -> int:
    """Prints rows, the named columns of each in a table and all of it in JSON; returns how many there were.

    On a terminal what ``has_failed`` is red, and a message id is as short as it is unique among them.
    """
    shown = [presentable(row) for row in rows]
    if invocation().is_json:
        for row in shown:
            click.echo(json_line(row))
    elif shown:
        _table(shown, columns, has_failed)
    return len(shown)


def one(row: Row) -> None:
    """Prints one object: a line a value, or a JSON object."""
    shown = presentable(row)
    if invocation().is_json:
        click.echo(json_line(shown))
        return
    width = max(map(len, shown), default=0)
    for key, value in shown.items():
        text = _cell_of(key, value).rstrip("\n").replace("\n", "\n" + " " * (width + 2))
        click.echo(click.style(f"{key:<{width}}" if text else key, bold=True) + (f"  {text}" if text else ""))


def done(text: str, row: Row) -> None:
    """Prints what was done: a sentence, or a JSON object."""
    click.echo(json_line(presentable(row)) if invocation().is_json else text)


def note(text: str) -> None:
    """Prints a remark on standard error."""
    click.echo(text, err=True)


def note_of_end(error: BaseException, count: int, done: str, rest: str = "") -> None:
    """Says how many are ``done`` where an error or an interrupt ends a command, and what does the ``rest``.

    An error that ended it before anything was done speaks for itself.
    """
    if not count and isinstance(error, Exception):
        return
    how = "stopped" if isinstance(error, Exception) else "interrupted"
    note(f"trigmon: {how}; {count} {done}" + (f"; {rest}" if count and rest else ""))


def instant(ms: int) -> str | None:
    """Returns milliseconds since 1970 as RFC 3339 in UTC; None for never."""
    if not ms:
        return None
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def presentable(row: Row) -> dict[str, Any]:
    """Returns a row as it is printed: an instant ``..._ms`` becomes RFC 3339 in ``..._time``, bytes hexadecimal."""
    return dict(_presentable(key, value) for key, value in row.items())


def json_line(row: Row) -> str:
    """Returns one object in one line."""
    import json

    return json.dumps(row, ensure_ascii=False, separators=(", ", ": "))


def cell(value: object) -> str:
    """Returns a value as a table shows it, without control characters of the terminal."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return shlex.join(map(cell, value))
    if isinstance(value, Mapping):
        return shlex.join(f"{key}={cell(inner)}" for key, inner in value.items())
    return printable(str(value), "\n\t")


def printable(text: str, also: str = "") -> str:
    """Returns text with a dot for each character that is not printable and not in ``also``."""
    return "".join(c if c.isprintable() or c in also else "·" for c in text)


def _presentable(key: str, value: Any) -> tuple[str, Any]:
    if key in _INSTANTS:
        return _INSTANTS[key], instant(value)
    if isinstance(value, bytes):
        return key, value.hex()
    if isinstance(value, Mapping):
        return key, presentable(value)
    if isinstance(value, list):
        return key, [presentable(item) if isinstance(item, Mapping) else item for item in value]
    return key, value


_INSTANTS = {
    f"{what}_ms": f"{what}_time"
    for what in (
        "created",
        "altered",
        "put",
        "start",
        "started",
        "end",
        "recorded",
        "now",
        "trigger_stamp",
        "at",
        "since",
        "dead",
        "made",
        "cancelled",
        "first_open",
        "first_get",
        "first_rows",
        "oldest",
        "last_put",
        "last_copy",
        "last_get",
        "application",
        "settled",
        "last_moment",
        "last_start",
        "moment",
        "next",
    )
}


def _cell_of(key: str, value: object) -> str:
    return with_age(value) if key in _MOMENTS and isinstance(value, str) else cell(value)


_MOMENTS = frozenset(_INSTANTS.values())


def _table(rows: list[dict[str, Any]], columns: Sequence[str], has_failed: Callable[[Row], bool]) -> None:
    is_terminal = sys.stdout.isatty()
    is_red = [is_terminal and "NO_COLOR" not in os.environ and has_failed(row) for row in rows]
    if is_terminal and "msg_id" in columns:
        ids = short_ids([row["msg_id"] for row in rows])
        rows = [row | {"msg_id": short} for row, short in zip(rows, ids, strict=True)]
    rows = [row | {key: to_the_second(row[key]) for key in _MOMENTS & row.keys() if row[key]} for row in rows]
    cells = [[" ".join(_cell_of(column, row.get(column)).split("\n")) for column in columns] for row in rows]
    table = TableLayout(columns, cells, shutil.get_terminal_size().columns if is_terminal else 0)
    for line in table.head:
        click.echo(click.style(line, bold=True))
    if is_terminal:
        click.echo(table.rule)
    for line, red in zip(table.body, is_red, strict=True):
        click.echo(click.style(line, fg="red") if red else line)
    if table.below:
        click.echo()
    for line in table.below:
        click.echo(line)

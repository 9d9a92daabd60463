"""Makes commands: an example in the help of each, and the three common options, which may stand anywhere."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from trigmon.client.connection import Connection

F = TypeVar("F", bound=Callable[..., Any])
COMPLETING = "_TRIGMON_COMPLETE"
"""The variable by which a shell asks for completions instead of a command; click made its name."""


@dataclass
class Invocation:
    """The three common options, at any place of the command line; the last one of each holds."""

    qmgr: str | None = None
    config: str | None = None
    output: str = "table"

    @property
    def is_json(self) -> bool:
        """Whether standard output is for a program."""
        return self.output == "json"

    @contextmanager
    def connected(self, ctx: click.Context | None = None, timeout_s: float = 10.0) -> Iterator[Connection]:
        """Yields a connection to the queue manager that the options name; an exception backs out its unit of work.

        ``ctx`` is the command's context where click has made none current, as while a shell completes.
        """
        from trigmon.client.address import connect
        from trigmon.mq.errors import UnknownObjectName

        self.announce_config()
        if self.config:
            # Where --qmgr names the queue manager, nothing else would notice that the file is missing.
            self.settings()
        name = (ctx or click.get_current_context()).info_name
        with connect(self.qmgr, application=f"trigmon {name}", timeout_s=timeout_s) as connection:
            try:
                yield connection
            except UnknownObjectName as error:
                from trigmon.cli.nearest_name import nearest_name

                if near := nearest_name(connection, error.about):
                    raise UnknownObjectName(f"{error.about}; the nearest known one is {near}") from None
                raise

    def announce_config(self) -> None:
        """Sets TRIGMON_CONFIG to the absolute path of ``--config``, for this process and those that it starts."""
        if chosen := self.config or os.environ.get("TRIGMON_CONFIG"):
            # What a monitor starts has a working directory of its own.
            os.environ["TRIGMON_CONFIG"] = str(Path(chosen).expanduser().absolute())

    def settings(self, **overrides: Any) -> Any:
        """Returns the settings with the command line's ``section__key`` values on top. Raises SettingsError."""
        from trigmon import settings

        given = {key.replace("__", ".", 1): value for key, value in overrides.items()}
        # An address says where a queue manager listens, not what it is called.
        name = None if self.qmgr and ":" in self.qmgr else self.qmgr
        return settings.load({"qmgr.name": name, **given}, self.config)

    def settings_of_meant(self, **overrides: Any) -> Any:
        """Returns the settings of the queue manager that a client of this command line connects to, also by ``use``.

        Where somebody names a data directory, or several run and nobody says which, those that the files give. Raises
        SettingsError.
        """
        from trigmon import paths
        from trigmon.client.address import default_address
        from trigmon.mq.errors import QMgrNameError

        self.announce_config()
        plain = self.settings(**overrides)
        if self.qmgr or not plain.origin("qmgr.data").startswith(str(paths.shipped("config"))):
            return plain
        try:
            meant = default_address()
        except QMgrNameError:
            return plain
        return self.settings(qmgr__name=None if ":" in meant else meant, **overrides)


def invocation(ctx: click.Context | None = None) -> Invocation:
    """Returns the common options of this command line."""
    root = (ctx or click.get_current_context()).find_root()
    if root.obj is None:
        root.obj = Invocation()
    assert isinstance(root.obj, Invocation)
    return root.obj


def _remember(ctx: click.Context, parameter: click.Parameter, value: str | None) -> None:
    if value is not None and parameter.name is not None:
        setattr(invocation(ctx), parameter.name, value)


def common_options(command: F) -> F:
    """Adds ``--qmgr``, ``--config`` and ``--output``."""
    for option in (
        click.option(
            "--output",
            type=click.Choice(["table", "json"]),
            expose_value=False,
            callback=_remember,
            help="A table for people (default), or JSON: one object a line.",
        ),
        click.option(
            "--config",
            type=click.Path(exists=True, dir_okay=False),
            expose_value=False,
            callback=_remember,
            help="A settings file over /etc/trigmon/trigmon.yaml.",
        ),
        click.option(
            "--qmgr",
            metavar="NAME",
            expose_value=False,
            callback=_remember,
            help="The queue manager: a name, unix:/PATH, tls://HOST:PORT/NAME or tcp://HOST:PORT/NAME.",
        ),
    ):
        command = option(command)
    return command


class _WithExample(click.Command):
    """A command whose help ends with an example."""

    def __init__(self, *args: Any, example: str, **named: Any) -> None:
        lines = "\n".join(f"  {line}" for line in example.splitlines())
        named["epilog"] = f"\b\nExample:\n{lines}"
        super().__init__(*args, **named)
        self.example = example

    def get_short_help_str(self, limit: int = 45) -> str:
        """Returns the first sentence of the help; of one that is longer as many whole clauses as fit."""
        whole = super().get_short_help_str(10 * limit).removesuffix(".")
        if len(whole) <= limit:
            return whole
        if len(head := whole.partition(" (")[0]) <= limit:
            return head
        for ends in (": ", "; "), (", ",):
            if (end := max(head.rfind(mark, 0, limit) for mark in ends)) > 0:
                return head[:end]
        return super().get_short_help_str(limit)


class Command(_WithExample):
    """A command with an example and the common options."""


class Group(_WithExample, click.Group):
    """A group with an example, whose commands are made by :func:`command`."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Returns the command as click does; the error for an unknown name offers the nearest one."""
        # While a shell completes, an unknown word offers nothing and is no error.
        if args and not ctx.resilient_parsing:
            self._check(ctx, args[0])
        return super().resolve_command(ctx, args)

    def _check(self, ctx: click.Context, name: str) -> None:
        known = self.list_commands(ctx)
        if name in known:
            return
        refusal = "there is no command" if ctx.parent is None else f"{ctx.info_name} has no command"
        raise click.UsageError(f"{refusal} {name!r}{nearest(name, known)}", ctx)


def command(name: str, example: str, group: click.Group | None = None) -> Callable[[Callable[..., Any]], Command]:
    """Makes a function a command, of a group when one is given."""

    def make(function: Callable[..., Any]) -> Command:
        made = click.command(name, cls=Command, example=example)(common_options(function))
        if group is not None:
            group.add_command(made)
        return made

    return make


def group(name: str, example: str) -> Callable[[Callable[..., Any]], Group]:
    """Makes a function a group of commands."""

    def make(function: Callable[..., Any]) -> Group:
        return click.group(name, cls=Group, example=example)(common_options(function))

    return make


def nearest(given: str, known: Iterable[str]) -> str:
    """Returns ``; did you mean 'x'?``, or "" where no known name is near."""
    near = get_close_matches(given, list(known), n=1, cutoff=0.5)
    return f"; did you mean {near[0]!r}?" if near else ""


def complete_names(object_type: str) -> Callable[..., list[str]]:
    """Returns a completion of the names of one object type; it is empty where no queue manager answers in 2 s."""

    def complete(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
        from trigmon.mq.calls import Display
        from trigmon.mq.replies import Listing

        try:
            with invocation(ctx).connected(ctx, timeout_s=2.0) as qm:
                listing = qm.ask(Display(object_type=object_type, name=f"{incomplete}*"), Listing)
        except Exception:
            # An error must not be printed into the line being typed; the command will print it.
            return []
        return [row["name"] for row in listing.rows]

    return complete


_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400}


def age(ctx: click.Context, parameter: click.Parameter, value: str | None) -> int:
    """Returns milliseconds of ``90``, ``5m``, ``1.5h``; a number alone is seconds."""
    if value is None:
        return 0
    found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,3})?)\s*(ms|s|m|h|d|)", value.strip())
    if not found:
        raise click.BadParameter(f"{value!r} is no time such as 30s, 5m, 2h or 1d")
    return round(float(found[1]) * _UNITS[found[2] or "s"] * 1000)


def since(ctx: click.Context, parameter: click.Parameter, value: str | None) -> int:
    """Returns the milliseconds since 1970 of a day, a time of a day, or so long ago; 0 for None. Days are UTC's."""
    if value is None:
        return 0
    now = datetime.now(UTC)
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    named = {"today": midnight, "yesterday": midnight - timedelta(days=1)}.get(value.strip().lower())
    if named is None and "-" in value:
        try:
            named = datetime.fromisoformat(value.strip())
        except ValueError:
            problem = f"{value!r} is no day or time such as 2026-11-21, 2026-11-21T09:30 or yesterday"
            raise click.BadParameter(problem) from None
        named = named if named.tzinfo else named.replace(tzinfo=UTC)
    if named is not None:
        return round(named.timestamp() * 1000)
    return round(now.timestamp() * 1000) - age(ctx, parameter, value)


queue_argument = click.argument("queue", shell_complete=complete_names("queue"))
process_argument = click.argument("process", shell_complete=complete_names("PROCESS"))
reason_option = click.option("--reason", default="", metavar="TEXT", help="The reason, kept with the change.")

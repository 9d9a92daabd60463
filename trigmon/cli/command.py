"""How every command is made: an example in its help, and the three options that may stand anywhere."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from trigmon.client.connection import Connection

F = TypeVar("F", bound=Callable[..., Any])


@dataclass
class Invocation:
    """What the three common options said, wherever they stood; the last one said holds."""

    qmgr: str | None = None
    config: str | None = None
    output: str = "table"

    @property
    def is_json(self) -> bool:
        """Whether standard output is for a program."""
        return self.output == "json"

    @contextmanager
    def connected(self) -> Iterator[Connection]:
        """A connection to the queue manager meant; left by an exception it backs out."""
        from trigmon.client.connecting import connect

        self.announce_config()
        if self.config:
            # Where --qmgr names the queue manager nothing else would notice a file that is not there.
            self.settings()
        with connect(self.qmgr, application=f"trigmon {click.get_current_context().info_name}") as connection:
            yield connection

    def announce_config(self) -> None:
        """Makes ``--config`` hold for all that asks for settings in this process and those it starts."""
        if self.config:
            os.environ["TRIGMON_CONFIG"] = self.config

    def settings(self, **overrides: Any) -> Any:
        """The settings with the command line's ``section__key`` values on top. Raises SettingsError."""
        from trigmon import settings

        said = {key.replace("__", ".", 1): value for key, value in overrides.items()}
        # An address says where a queue manager listens, not what it is called.
        name = None if self.qmgr and ":" in self.qmgr else self.qmgr
        return settings.load({"qmgr.name": name, **said}, self.config)


def invocation(ctx: click.Context | None = None) -> Invocation:
    """The common options of this run of the program."""
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
            type=click.Path(dir_okay=False),
            expose_value=False,
            callback=_remember,
            help="A settings file over /etc/trigmon/trigmon.yaml.",
        ),
        click.option(
            "--qmgr",
            metavar="NAME",
            expose_value=False,
            callback=_remember,
            help="The queue manager: a name, unix:/PATH or tcp://HOST:PORT.",
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


class Command(_WithExample):
    """A command with an example and the common options."""


class Group(_WithExample, click.Group):
    """A group with an example, whose commands are made by :func:`command`."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click, with the nearest command in the refusal of an unknown one."""
        known = self.list_commands(ctx)
        if args and args[0] not in known:
            raise click.UsageError(f"{ctx.info_name} has no command {args[0]!r}{nearest(args[0], known)}", ctx)
        return super().resolve_command(ctx, args)


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


def nearest(said: str, known: Iterable[str]) -> str:
    """``; did you mean 'x'?``, or nothing."""
    near = get_close_matches(said, list(known), n=1, cutoff=0.5)
    return f"; did you mean {near[0]!r}?" if near else ""


def _complete_names(object_type: str) -> Callable[..., list[str]]:
    def complete(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
        from trigmon.mq.calls import Display, Listing
        from trigmon.mq.errors import MQError

        try:
            with invocation(ctx).connected() as qm:
                listing = qm.ask(Display(object_type=object_type, name=f"{incomplete}*"), Listing)
        except (MQError, OSError):
            return []
        return [row["name"] for row in listing.rows]

    return complete


queue_argument = click.argument("queue", shell_complete=_complete_names("queue"))
process_argument = click.argument("process", shell_complete=_complete_names("PROCESS"))

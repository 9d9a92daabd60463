"""``trigmon help``: what an attribute means, or how a command is used."""

from __future__ import annotations

from typing import Any

import click

from trigmon.cli.command import command, nearest


@command("help", "trigmon help trigger_msg_priority\ntrigmon help TRIGMPRI\ntrigmon help queue define")
@click.argument("words", nargs=-1, metavar="[ATTRIBUTE | COMMAND...]")
@click.pass_context
def help_(ctx: click.Context, words: tuple[str, ...]) -> None:
    """Tell what an attribute means, or how a command is used.

    An attribute of a queue, a process or another object is named as in YAML or by MQSC's word, in any case; a word
    that is also a command's, in capitals.
    """
    from trigmon.cli import output
    from trigmon.mq.attributes import ATTRIBUTES

    root = ctx.find_root()
    if not words:
        click.echo(root.get_help())
        return
    if (found := _command(root, words)) is not None:
        click.echo(found.command.get_help(found))
        return
    known = {name for kind in ATTRIBUTES.values() for each in kind.values() for name in (each.name, each.mqsc.lower())}
    if len(words) == 1 and words[0].lower() in known:
        output.one(_meaning(words[0].lower()))
        return
    commands = root.command.list_commands(root) if isinstance(root.command, click.Group) else []
    name = " ".join(words)
    near = nearest(name.lower(), [*known, *commands])
    raise click.UsageError(f"{name!r} is neither an attribute nor a command{near}")


def _meaning(name: str) -> dict[str, Any]:
    """Returns what an attribute is, and of which objects; of those that differ in a default the first."""
    from trigmon.mq.attribute_meanings import MEANINGS
    from trigmon.mq.attributes import ATTRIBUTES

    found = [(kind, each) for kind, table in ATTRIBUTES.items() for each in table.values()]
    of = [(kind, each) for kind, each in found if name in (each.name, each.mqsc.lower())]
    attribute = of[0][1]
    default = attribute.plain(attribute.default)
    return {
        "attribute": attribute.name,
        "mqsc": f"{attribute.mqsc}{' (not of MQ)' if attribute.ours else ''}",
        "of": ", ".join(kind.name for kind, _ in of),
        "means": MEANINGS[attribute.name],
        "allowed": attribute.allowed,
        "default": "none" if default == "" else default,
    }


def _command(root: click.Context, words: tuple[str, ...]) -> click.Context | None:
    """Returns the context of a command by its words; None where there is none."""
    context = root
    for word in words:
        group = context.command
        found = group.get_command(context, word) if isinstance(group, click.Group) else None
        if found is None:
            return None
        context = click.Context(found, info_name=word, parent=context)
    return context

"""Which bridge of the settings a command line means, and a connection over it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from trigmon.cli.command import invocation, nearest

if TYPE_CHECKING:
    from trigmon.bridge.connection import RemoteConnection
    from trigmon.setting_sections import BridgeSettings


def bridge_of(name: str) -> str:
    """Returns the bridge of this name, or the only one to a queue manager of this name. Raises UsageError."""
    bridges: dict[str, BridgeSettings] = invocation().settings().bridges
    if name in bridges:
        return name
    found = [each for each, of in bridges.items() if of.queue_manager == name]
    if len(found) == 1:
        return found[0]
    if found:
        raise click.UsageError(f"{name} is the queue manager of the bridges {', '.join(found)}: name one of them")
    known = [*bridges, *(of.queue_manager for of in bridges.values())]
    hint = nearest(name, known) or ("; the settings have no section bridges" if not bridges else "")
    raise click.UsageError(f"{name!r} is no bridge of the settings, and no queue manager of one{hint}")


@contextmanager
def connected_bridge(name: str) -> Iterator[RemoteConnection]:
    """Yields the connection of a bridge, and ends it. Raises ClickException with the reason and its remedy."""
    from trigmon.bridge.connection import BridgeError, RemoteConnection, RemoteError

    settings = invocation().settings()
    secrets = settings.monitor.secrets_directory
    connection = RemoteConnection(name, settings.bridges[name], secrets, application="trigmon")
    try:
        try:
            yield connection
        finally:
            connection.drop()
    except (BridgeError, RemoteError) as error:
        raise click.ClickException(f"bridge {name}: {error}; trigmon bridge check {name} shows more") from None

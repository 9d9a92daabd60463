"""``trigmon bridge copy``: the messages of a queue of IBM MQ elsewhere are moved into a local queue."""

from __future__ import annotations

import shutil
import sys
import threading
from typing import TYPE_CHECKING, Any

import click

from trigmon.cli.command import command, invocation

if TYPE_CHECKING:
    from trigmon.bridge.copy import CopyLoop


@command("copy", "trigmon bridge copy ORDERS@PROD\ntrigmon bridge copy ORDERS@PROD --to IN --until-empty")
@click.argument("queue", metavar="QUEUE@QM", required=False)
@click.option("--to", metavar="QUEUE", default="", help="The local queue.  [default: the one of the same name]")
@click.option("--until-empty", is_flag=True, help="End when the queue there is empty, instead of waiting for more.")
@click.option("--configured", is_flag=True, help="Copy all queues that copy_queues of the bridges names.")
def copy(queue: str | None, to: str, until_empty: bool, configured: bool) -> None:
    """Move the messages of a queue of MQ into a local queue, each once, until Ctrl-C.

    QM is a bridge of the settings, or its queue manager. Descriptors and properties stay, and the data are not
    converted. Where one side is away, or the local queue is full, it waits and says so; nothing is lost. A message that
    the local queue never takes goes to the dead-letter queue. The queue there is open for exclusive input meanwhile.

    trigmon run does this itself for the queues that copy_queues names.
    """
    from trigmon import log
    from trigmon.keeper.private_memory import keep_memory_private

    if bool(queue) == configured:
        raise click.UsageError("give QUEUE@QM, or --configured")
    keep_memory_private()
    ours = invocation()
    ours.announce_config()
    settings = ours.settings()
    log.configure(settings.log.level, settings.log.format)
    if configured:
        _copy_configured(settings)
        return
    assert queue is not None
    _copy_one(settings, queue, to, until_empty)


def _copy_configured(settings: Any) -> None:
    from functools import partial

    from trigmon import log
    from trigmon.bridge.copy_threads import copy_of, run_all

    log.say_always(qmgr=settings.qmgr.name)
    stopped = threading.Event()
    given: dict[str, Any] = {"secrets": settings.monitor.secrets_directory, "address": invocation().qmgr}
    made = {
        f"{q_name}@{of.queue_manager}": partial(copy_of, q_name, name, of, is_patient=True, stopped=stopped, **given)
        for name, of in settings.bridges.items()
        for q_name in of.copy_queues
    }
    if not made:
        raise click.UsageError("no bridge of the settings names a queue in copy_queues")
    run_all(made, stopped)


def _copy_one(settings: Any, queue: str, to: str, until_empty: bool) -> None:
    from trigmon.bridge.connection import BridgeError, RemoteError
    from trigmon.bridge.copy_threads import copy_of, run_one
    from trigmon.cli import output
    from trigmon.cli.bridge_names import bridge_of

    q_name, _, named = queue.rpartition("@")
    if not q_name or not named:
        raise click.UsageError(f"{queue!r} is no QUEUE@QM, such as ORDERS@PROD")
    name = bridge_of(named)
    loop = copy_of(
        q_name,
        name,
        settings.bridges[name],
        secrets=settings.monitor.secrets_directory,
        address=invocation().qmgr,
        to=to,
        until_empty=until_empty,
        stopped=threading.Event(),
    )
    try:
        run_one(loop, _show)
    except (BridgeError, RemoteError) as error:
        raise click.ClickException(f"{loop.here.source}: {error}; trigmon bridge check {name} shows more") from None
    finally:
        _show_end()
    state = loop.state
    aside = f", {state.put_aside} of them to the dead-letter queue" if state.put_aside else ""
    text = f"{state.copied} messages of {state.name} are copied to {state.q_name}{aside}"
    row = {"name": state.name, "q_name": state.q_name, "copied": state.copied, "put_aside": state.put_aside}
    output.done(text, {"action": "copied", **row})


def _show(loop: CopyLoop) -> None:
    """Shows on a terminal how far the copy is, in one line that is written over."""
    if not sys.stderr.isatty() or invocation().is_json:
        return
    state = loop.state
    left = f", {state.left} left there" if state.left >= 0 else ""
    problem = f"; {state.problem}" if state.problem else ""
    text = f"{state.name}: {state.copied} copied, {state.rate:g} a second{left}{problem}"
    click.echo(f"\r\x1b[K{text[: shutil.get_terminal_size().columns - 1]}", err=True, nl=False)


def _show_end() -> None:
    if sys.stderr.isatty() and not invocation().is_json:
        click.echo(err=True)

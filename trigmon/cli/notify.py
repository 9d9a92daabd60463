"""``trigmon notify``: sends events as mail, to a web hook or to a command; a process definition starts it."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trigmon.cli.command import command, invocation

if TYPE_CHECKING:
    from trigmon.notifier.channels import Channel

SMTP_PORT = 25


@command("notify", "trigmon notify --smtp localhost --to ops@example.org\ntrigmon notify --command 'logger -t trigmon'")
@click.option("--queue", help="The queue with the events.  [default: TRIGMON_QNAME, else SYSTEM.TRIGMON.EVENT]")
@click.option("--smtp", metavar="HOST[:PORT]", help="Send mail by this server: port 25, 587 or 465 (TLS).")
@click.option("--to", multiple=True, metavar="ADDRESS", help="Who gets the mail; may be given several times.")
@click.option("--from", "sender", metavar="ADDRESS", help="The sender of the mail.  [default: trigmon@HOST]")
@click.option("--user", default="", help="The user at the mail server; the password is the secret.")
@click.option("--webhook", metavar="URL", help="Post one JSON object to this address.")
@click.option("--webhook-secret", default="", metavar="NAME", help="As --webhook, with the address in this file.")
@click.option("--command", "program", metavar="WORDS", help="Start this command with the text on its standard input.")
@click.option("--json", "as_json", is_flag=True, help="The command gets the JSON object instead of the text.")
@click.option("--secret", default="", metavar="NAME", help="A file in $CREDENTIALS_DIRECTORY: the password, or token.")
@click.option(
    "--collect",
    type=click.FloatRange(min=0),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="Collect events for so long behind the first; repetitions become one line.",
)
@click.pass_context
def notify(
    ctx: click.Context,
    queue: str | None,
    smtp: str | None,
    to: tuple[str, ...],
    sender: str | None,
    user: str,
    webhook: str | None,
    webhook_secret: str,
    program: str | None,
    as_json: bool,
    secret: str,
    collect: float,
) -> None:
    """Send the events on a queue, and end when the queue is empty, or after two minutes.

    What cannot be sent stays on the queue, and the command ends with 1: its process is tried again (RETRY). Events
    about its own queue and its own process are not sent. By hand it is a test of the way to send.
    """
    from trigmon.cli import output
    from trigmon.cli.errors import FAILED
    from trigmon.client.triggered import triggered
    from trigmon.mq.event_kinds import EVENT_QUEUE
    from trigmon.notifier.channels import PartlySentError, SendError
    from trigmon.notifier.notifier import notify as send

    given = [way for way in (smtp, webhook, webhook_secret, program) if way]
    if len(given) != 1:
        raise click.UsageError("give one of --smtp, --webhook, --webhook-secret and --command")
    if bool(smtp) != bool(to):
        raise click.UsageError("--smtp needs --to, and --to needs --smtp")
    started = triggered()
    q_name = queue or (started.q_name if started else EVENT_QUEUE)
    address = webhook or _value("--webhook-secret", webhook_secret)
    channel = _channel(smtp, to, sender, user, address, program, as_json, _value("--secret", secret))
    try:
        with invocation().connected() as qm:
            sent = send(qm, q_name, channel, collect_s=collect, process_name=started.process_name if started else "")
    except PartlySentError as error:
        output.note(f"trigmon: sent to the other recipients only: {error}")
        ctx.exit(FAILED)
    except SendError as error:
        output.note(f"trigmon: not sent, the events stay on {q_name}: {error}")
        ctx.exit(FAILED)
    output.done(f"{sent} notifications are sent", {"action": "notified", "count": sent})


def _channel(
    smtp: str | None,
    to: tuple[str, ...],
    sender: str | None,
    user: str,
    webhook: str,
    program: str | None,
    as_json: bool,
    secret: str,
) -> Channel:
    import socket

    from trigmon.notifier.channels import Command, Mail, WebHook

    if smtp:
        host, port = _host_and_port(smtp)
        return Mail(host, port, sender or f"trigmon@{socket.getfqdn()}", to, user, secret)
    if program is None:
        return WebHook(webhook, secret)
    try:
        words = shlex.split(program)
    except ValueError as error:
        raise click.UsageError(f"--command: {error}") from None
    if not words:
        raise click.UsageError("--command is blank")
    return Command(words, as_json)


def _host_and_port(smtp: str) -> tuple[str, int]:
    """Returns both of HOST, HOST:PORT or, for an address with colons, [HOST]:PORT."""
    match = re.fullmatch(r"(?:\[(?P<v6>[^]]+)\]|(?P<host>[^:]+))(?::(?P<port>.*))?", smtp)
    if match is None:
        raise click.UsageError(f"--smtp {smtp}: give HOST, HOST:PORT, or [ADDRESS]:PORT for an IPv6 address")
    port = match["port"] or str(SMTP_PORT)
    if not port.isdecimal():
        raise click.UsageError(f"--smtp {smtp}: the port is a number")
    return match["v6"] or match["host"], int(port)


def _value(option: str, name: str) -> str:
    """Returns the content of the secret's file, without the line's end; "" where none is named."""
    if not name:
        return ""
    directory = os.environ.get("CREDENTIALS_DIRECTORY")
    if not directory:
        raise click.UsageError(f"{option} {name}: CREDENTIALS_DIRECTORY is not set; the process names it in SECRETS")
    from trigmon.keeper.private_memory import keep_memory_private

    keep_memory_private()
    return (Path(directory) / name).read_text().strip()

"""``amqsgbr``: prints the data of the messages of a queue and leaves them there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from trigmon.cli.mq_commands import sample_program
from trigmon.cli.mq_commands.sample_program import FailedCallError
from trigmon.mq.errors import MQError

if TYPE_CHECKING:
    from trigmon.client.connection import Connection

MOST_BYTES = 65_535
"""Of a longer message the beginning is printed."""


def amqsgbr(arguments: Sequence[str]) -> int:
    """Browses a queue; 0, or the reason of a failed call modulo 256. Raises MqUsageError."""
    click.echo("Sample AMQSGBR0 (browse) start")
    try:
        q_name, q_mgr_name = sample_program.names(arguments)
        click.echo(q_mgr_name)
        with sample_program.connection(q_mgr_name, "amqsgbr") as qm:
            status = _browse(qm, q_name)
    except FailedCallError as failed:
        return failed.status
    click.echo("Sample AMQSGBR0 (browse) end")
    return status


def _browse(qm: Connection, q_name: str) -> int:
    try:
        with sample_program.opened(qm, q_name, "browse") as queue:
            for number, message in enumerate(queue.browse(), 1):
                if number == 1:
                    click.echo(f"Messages for {queue.q_name}")
                click.echo(f"{number} <".encode() + message.data[:MOST_BYTES] + b">")
                if len(message.data) > MOST_BYTES:
                    click.echo("  --- truncated")
    except FailedCallError as failed:
        return failed.status
    except MQError as error:
        click.echo(f"MQGET ended with reason code {int(error.reason)}")
        return sample_program.status_of(error)
    click.echo("no more messages")
    return 0

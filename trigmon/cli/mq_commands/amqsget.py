"""``amqsget``: takes messages off a queue and prints them, until none has come for 15 seconds."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from trigmon.cli.mq_commands import sample_program
from trigmon.cli.mq_commands.sample_program import FailedCallError
from trigmon.mq.errors import MQError, NoMsgAvailable

if TYPE_CHECKING:
    from trigmon.client.connection import Connection

WAIT_MS = 15_000


def amqsget(arguments: Sequence[str]) -> int:
    """Gets messages; 0, or the reason of a failed call modulo 256. Raises MqUsageError.

    A message that could not be printed is back on the queue.
    """
    click.echo("Sample AMQSGET0 start")
    try:
        q_name, q_mgr_name = sample_program.names(arguments)
        with sample_program.connection(q_mgr_name, "amqsget") as qm:
            status = _get(qm, q_name)
    except FailedCallError as failed:
        return failed.status
    click.echo("Sample AMQSGET0 end")
    return status


def _get(qm: Connection, q_name: str) -> int:
    try:
        with sample_program.opened(qm, q_name, "input_as_q_def") as queue:
            while True:
                sys.stdout.flush()
                message = queue.get(wait_interval_ms=WAIT_MS, syncpoint=True)
                click.echo(b"message <" + message.data + b">")
                qm.commit()
    except FailedCallError as failed:
        return failed.status
    except NoMsgAvailable:
        click.echo("no more messages")
        return 0
    except MQError as error:
        click.echo(f"MQGET ended with reason code {int(error.reason)}")
        return sample_program.status_of(error)

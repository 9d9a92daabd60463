"""``amqsput``: puts a message for each line of standard input, to its end or to an empty line."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from trigmon.cli.mq_commands import sample_program
from trigmon.cli.mq_commands.sample_program import FailedCallError
from trigmon.mq.errors import MQError

if TYPE_CHECKING:
    from trigmon.client.connection import Connection


def amqsput(arguments: Sequence[str]) -> int:
    """Puts the lines; 0, or the reason of a failed call modulo 256. Raises MqUsageError."""
    click.echo("Sample AMQSPUT0 start")
    try:
        q_name, q_mgr_name = sample_program.names(arguments)
        with sample_program.connection(q_mgr_name, "amqsput") as qm:
            click.echo(f"target queue is {q_name}")
            status = _put_lines(qm, q_name)
    except FailedCallError as failed:
        return failed.status
    click.echo("Sample AMQSPUT0 end")
    return status


def _put_lines(qm: Connection, q_name: str) -> int:
    try:
        with sample_program.opened(qm, q_name, "output") as queue:
            for line in _lines():
                queue.put(line, format="MQSTR")
    except FailedCallError as failed:
        return failed.status
    except MQError as error:
        click.echo(f"MQPUT ended with reason code {int(error.reason)}")
        return sample_program.status_of(error)
    return 0


def _lines() -> Iterator[str | bytes]:
    """Yields the lines, as text where they are; the first empty one ends them, as in MQ."""
    for line in sys.stdin.buffer:
        body = line.rstrip(b"\n").removesuffix(b"\r")
        if not body:
            return
        try:
            yield body.decode()
        except UnicodeDecodeError:
            yield body

"""What MQ's sample programs have in common: a queue's name, a queue manager's name, and a line for each failed call.

MQ's end with the reason of a failed MQCONN, of which a shell sees the lowest 8 bits, and with 0 after any other failed
call. These end with the reason after each, so that a script sees it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from trigmon.cli.mq_commands.mq_options import MqUsageError, connected
from trigmon.mq.errors import MQError

if TYPE_CHECKING:
    from trigmon.client.connection import Connection
    from trigmon.client.queue import Queue

MISSING_PARAMETER = 99


class FailedCallError(Exception):
    """A call that failed and was reported; ``status`` is the exit status."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


def names(arguments: Sequence[str]) -> tuple[str, str]:
    """Returns the names of the queue and of the queue manager, "" for the one that is meant. Raises MqUsageError."""
    if not arguments:
        click.echo("Required parameter missing - queue name")
        raise FailedCallError(MISSING_PARAMETER)
    if len(arguments) > 2:
        raise MqUsageError(f"{arguments[2]} is one word too many: options of MQOPEN and MQCLOSE are not taken")
    return arguments[0], arguments[1] if len(arguments) > 1 else ""


@contextmanager
def connection(q_mgr_name: str, program: str) -> Iterator[Connection]:
    """Yields a connection; one that fails is reported as the samples do it. Raises FailedCallError."""
    opened = connected(q_mgr_name, program)
    try:
        qm = opened.__enter__()
    except MQError as error:
        click.echo(f"MQCONN ended with reason code {int(error.reason)}")
        raise FailedCallError(status_of(error)) from None
    with qm:
        yield qm


def opened(qm: Connection, q_name: str, how: str) -> Queue:
    """Returns the open queue; one that cannot be opened is reported. Raises FailedCallError."""
    try:
        return qm.open(q_name, how)
    except MQError as error:
        click.echo(f"MQOPEN ended with reason code {int(error.reason)}")
        click.echo(f"unable to open queue for {'output' if how == 'output' else 'input'}")
        raise FailedCallError(status_of(error)) from None


def status_of(error: MQError) -> int:
    """Returns the exit status that a shell sees of a reason; never 0."""
    return int(error.reason) % 256 or 1

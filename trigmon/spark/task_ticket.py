"""What lets Spark's tasks on other machines read one reservation over TLS: the driver gets it, the partitions carry it.

A worker needs no account, no certificate and no file: a ticket says what may be read, and the authority that the server
must prove itself by comes as text.
"""

from __future__ import annotations

from pathlib import Path

from trigmon.client.address import connect_by_ticket
from trigmon.client.connection import Connection
from trigmon.client.tls import tls_address
from trigmon.mq.calls import IssueTicket
from trigmon.mq.errors import FunctionNotSupported, SslInitializationError
from trigmon.mq.replies import TicketIssued
from trigmon.spark.options import Options

RECONNECT_S = 60.0
"""So long a task tries to go on behind a lost link: reading twice does no harm."""


class TaskTicket:
    """A ticket, the addresses where it is used, and the authority as text, empty for the worker's own list."""

    def __init__(self, ticket: str, addresses: list[str], authority: str) -> None:
        self._ticket = ticket
        self._addresses = addresses
        self._authority = authority

    def __repr__(self) -> str:
        """Returns where it is used, without the ticket, for logs and tracebacks."""
        return f"TaskTicket({', '.join(self._addresses)})"

    def connect(self) -> Connection:
        """Returns a connection that reads the reservation and nothing else; its ``drop`` ends it. Raises MQError."""
        return connect_by_ticket(
            self._addresses, self._ticket, self._authority, application="spark reading", reconnect_s=RECONNECT_S
        )


def task_ticket(connection: Connection, options: Options, reservation: int) -> TaskTicket | None:
    """Returns the ticket of a reservation for tasks; None where they come by the driver's own address.

    That is so where the address is not one of TLS, and at a queue manager that has no tickets yet.
    """
    addresses = (options.task_address or options.address).split(",")
    if not all(one.startswith("tls:") for one in addresses):
        return None
    try:
        issued = connection.ask(IssueTicket(reservation=reservation), TicketIssued)
    except FunctionNotSupported:
        if options.task_address:
            raise
        return None
    names = dict.fromkeys(tls_address(one).authority for one in addresses)
    return TaskTicket(
        issued.ticket,
        [one.partition("?")[0] for one in addresses],
        "\n".join(_text_of(name) for name in names if name),
    )


def _text_of(authority: str) -> str:
    """Returns the certificate of an authority. Raises SslInitializationError (2393) for a file that cannot be read."""
    try:
        return Path(authority).read_text()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no UTF-8"
        raise SslInitializationError(f"{authority}: {why}") from None

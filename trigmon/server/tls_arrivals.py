"""Clients by TLS: the account that a certificate or a password proves, or a ticket, before they are greeted."""

from __future__ import annotations

import asyncio
import datetime
import socket
import ssl
from functools import partial
from typing import Any

from trigmon.log import Seldom
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Refused
from trigmon.rules.model.ticket import Ticket
from trigmon.server.connection import Connection
from trigmon.server.connection_limits import Clients
from trigmon.server.executor import aside
from trigmon.server.listeners import tcp_listener
from trigmon.server.password_guesses import Guesses
from trigmon.server.peer_identity import Authority, Peer
from trigmon.server.tls_files import AHEAD, TlsFiles
from trigmon.settings import Settings
from trigmon.tls import passwords
from trigmon.tls.accounts import LONGEST_NAME, Account, Certificate, subject
from trigmon.tls.tickets import TicketError
from trigmon.wire.codec import Hello


def tls_arrivals(settings: Settings, authority: Authority, log: Any, seldom: Seldom) -> TlsArrivals:
    """Returns what serves ``tls.listen``, which must be set. Raises CannotStart."""
    files = TlsFiles(settings.tls, settings.qmgr.directory, log, settings.qmgr.name)
    assert settings.tls.address is not None
    return TlsArrivals(tcp_listener(settings.tls.address, "tls.listen"), files, authority, seldom)


class TlsArrivals:
    """The TLS listener's side of a greeting. ``listening`` is its socket."""

    def __init__(self, listening: socket.socket, files: TlsFiles, authority: Authority, seldom: Seldom) -> None:
        self.listening = listening
        self.files = files
        self._authority = authority
        authority.accounts = lambda: files.accounts.by_user
        self._seldom = seldom
        self._guesses = Guesses()
        self._checks: set[asyncio.Task[None]] = set()
        # Of users who came of late: when the certificate of each expires, in seconds since 1970.
        self._expiry: dict[str, float] = {}

    @property
    def context(self) -> ssl.SSLContext:
        """The context of the next handshake."""
        return self.files.context

    def warnings(self) -> list[str]:
        """Returns what an operator should know now."""
        now = datetime.datetime.now(datetime.UTC)
        soon = (now + AHEAD).timestamp()
        clients = [
            f"the certificate of {user} expires {datetime.datetime.fromtimestamp(at, datetime.UTC).date()}: "
            f"trigmon tls user {user} --certificate makes another"
            for user, at in self._expiry.items()
            if at < soon
        ]
        guesses = self._guesses.warnings(asyncio.get_running_loop().time())
        return [*self.files.warnings(now), *clients, *guesses]

    def sign_ticket(self, ticket: Ticket) -> str:
        """Returns a reservation's ticket as text."""
        return self.files.ticket_key.signed(ticket)

    def close(self) -> None:
        """Ends the checks of passwords that are under way."""
        for task in self._checks:
            task.cancel()

    def identify(self, clients: Clients, connection: Connection, hello: Hello) -> asyncio.Task[None] | None:
        """Finds the account of a client whose hello has come, and has it greeted or refused.

        Returns the check of a password, which ends with the connection.
        """
        certificate = connection.tls and connection.tls.getpeercert()
        if hello.ticket:
            self._by_ticket(clients, connection, hello)
        elif certificate:
            self._by_certificate(clients, connection, hello, certificate)
        elif not hello.user:
            self._refuse(connection, "neither a certificate nor a user and password came")
        else:
            task = asyncio.create_task(self._by_password(clients, connection, hello))
            self._checks.add(task)
            task.add_done_callback(self._checks.discard)
            return task
        return None

    def _by_certificate(self, clients: Clients, connection: Connection, hello: Hello, certificate: Certificate) -> None:
        from trigmon.tls.certificates import is_authority

        assert connection.tls is not None
        der = connection.tls.getpeercert(binary_form=True) or b""
        account = self.files.accounts.of_certificate(certificate, der)
        if is_authority(der):
            # Its key can sign a certificate of every user, so it proves none.
            about = f"the certificate {subject(certificate)} is an authority's (CA:TRUE), which is none of a user"
            self._refuse(connection, about)
        elif account is None:
            self._refuse(connection, f"no account has the certificate {subject(certificate)}")
        elif hello.user and hello.user != account.user:
            self._refuse(connection, f"the certificate is {account.user}'s, not {hello.user}'s")
        else:
            self._expiry[account.user] = ssl.cert_time_to_seconds(str(certificate["notAfter"]))
            self._admit(clients, connection, hello, account)

    def _by_ticket(self, clients: Clients, connection: Connection, hello: Hello) -> None:
        """Lets a task in that has a ticket, whatever else it brings. Whether it still holds the queue manager says."""
        try:
            ticket = self.files.ticket_key.read(hello.ticket)
        except TicketError as error:
            self._seldom.warning("a ticket was refused", why=str(error), address=connection.peer.address)
            connection.welcome(Refused(reason=int(Reason.NOT_AUTHORIZED), about=str(error)))
            return
        peer = Peer(user=ticket.user, address=connection.peer.address, ticket=ticket)
        if clients.identified(connection, peer):
            connection.ask_for_welcome(hello)

    async def _by_password(self, clients: Clients, connection: Connection, hello: Hello) -> None:
        address, user = connection.peer.host, hello.user[:LONGEST_NAME]
        now = asyncio.get_running_loop().time
        async with self._guesses.turn(address, user):
            await asyncio.sleep(self._guesses.wait_s(address, user, now()))
            account = self.files.accounts.by_user.get(hello.user)
            known = account.password if account is not None and account.password else passwords.of_nobody()
            is_right = await aside(partial(passwords.is_right, hello.password, known))
            # The file may have changed meanwhile.
            account = self.files.accounts.by_user.get(hello.user)
            if is_right and account is not None and account.password == known:
                self._guesses.was_right(address, user)
                self._admit(clients, connection, hello, account)
                return
            count = self._guesses.was_wrong(address, user, now())
            self._seldom.warning("a password was refused", user=user, address=address, count=count)
        self._refuse(connection, "the user or the password is wrong")

    def _admit(self, clients: Clients, connection: Connection, hello: Hello, account: Account) -> None:
        peer = self._authority.of_account(account.user, account.groups, connection.peer.address)
        if clients.identified(connection, peer):
            connection.ask_for_welcome(hello)

    def _refuse(self, connection: Connection, why: str) -> None:
        about = f"{why}; who may come by TLS stands in the file of tls.users (trigmon tls user)"
        connection.welcome(Refused(reason=int(Reason.NOT_AUTHORIZED), about=about))

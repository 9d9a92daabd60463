"""The ways to send a notification: a mail server, a web hook, a command. Each sends it whole or raises SendError.

Each has a time limit, so that a server that accepts and does not answer ends a try as one that refuses does.
"""

from __future__ import annotations

import http.client
import smtplib
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Sequence
from email.message import EmailMessage
from email.utils import formatdate
from typing import Protocol
from urllib.parse import urlsplit

import msgspec

from trigmon.notifier.notification import Notification

TIMEOUT_S = 30.0
COMMAND_S = 120.0
LONGEST_ERROR = 300
IMPLICIT_TLS, SUBMISSION = 465, 587


class SendError(Exception):
    """A notification was not sent; the events stay on their queue."""


class PartlySentError(SendError):
    """A mail server took a notification for some recipients, who would have it again: the events are done with."""


class Channel(Protocol):
    """A way to send notifications."""

    def send(self, notification: Notification) -> None:
        """Sends it. Raises SendError."""


class Mail(msgspec.Struct, frozen=True):
    """A mail server (SMTP). With a password, or on port 587, the connection is encrypted or nothing is sent."""

    host: str
    port: int
    sender: str
    to: tuple[str, ...]
    user: str = ""
    password: str = ""

    def send(self, notification: Notification) -> None:
        """Sends a mail to all recipients. Raises SendError, and PartlySentError where the server refuses only some."""
        try:
            with self._connected() as server:
                if self.password:
                    server.login(self.user, self.password)
                refused = server.send_message(self._message(notification))
        except (OSError, smtplib.SMTPException) as error:
            raise SendError(f"mail server {self.host}:{self.port}: {error}"[:LONGEST_ERROR]) from error
        if refused:
            text = f"mail server {self.host}:{self.port} refused {', '.join(refused)}"
            raise PartlySentError(text[:LONGEST_ERROR])

    def _connected(self) -> smtplib.SMTP:
        context = ssl.create_default_context()
        if self.port == IMPLICIT_TLS:
            return smtplib.SMTP_SSL(self.host, self.port, timeout=TIMEOUT_S, context=context)
        server = smtplib.SMTP(self.host, self.port, timeout=TIMEOUT_S)
        try:
            server.ehlo()
            # Opportunistic otherwise: a server on this machine often has a certificate that nobody signed.
            if self.password or self.port == SUBMISSION:
                server.starttls(context=context)
                server.ehlo()
        except BaseException:
            server.close()
            raise
        return server

    def _message(self, notification: Notification) -> EmailMessage:
        message = EmailMessage()
        message["Subject"] = " ".join(notification.subject.split())[:200]
        message["From"], message["To"] = self.sender, ", ".join(self.to)
        message["Date"] = formatdate()
        # The same mail sent twice has the same id, by which mail servers and readers know it.
        message["Message-ID"] = f"<{notification.key}@trigmon.invalid>"
        message["Auto-Submitted"] = "auto-generated"
        message.set_content(notification.text)
        return message


class WebHook(msgspec.Struct, frozen=True):
    """An address that gets the notification as JSON by POST. ``token`` is sent as a bearer token."""

    url: str
    token: str = ""

    def send(self, notification: Notification) -> None:
        """Posts it; an answer other than 2xx is an error. Raises SendError."""
        headers = {"Content-Type": "application/json", "Idempotency-Key": notification.key}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        if urlsplit(self.url).scheme not in ("http", "https"):  # the address is not named: it may be a secret
            raise SendError("the address of the web hook does not begin with http:// or https://")
        request = urllib.request.Request(self.url, notification.json, headers, method="POST")  # noqa: S310 - checked above
        where = urlsplit(self.url).hostname
        try:
            with _WITHOUT_REDIRECTS.open(request, timeout=TIMEOUT_S) as answer:
                answer.read(1)
        except urllib.error.HTTPError as error:
            raise SendError(f"web hook at {where}: status {error.code}"[:LONGEST_ERROR]) from error
        except (ValueError, http.client.InvalidURL):
            raise SendError(f"web hook at {where}: its address or token has characters that are not allowed") from None
        except (OSError, http.client.HTTPException) as error:
            raise SendError(f"web hook at {where}: {error}"[:LONGEST_ERROR]) from error


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirected POST would be sent as a GET, without the events, and the token to another server."""

    def redirect_request(self, *_: object) -> None:
        """Follows none: the redirection is then an error."""


_WITHOUT_REDIRECTS = urllib.request.build_opener(_NoRedirect)


class Command(msgspec.Struct, frozen=True):
    """A program that gets the text on its standard input, or the JSON. Status 0 means that it was sent."""

    words: Sequence[str]
    as_json: bool = False

    def send(self, notification: Notification) -> None:
        """Runs it; ``{subject}`` in one of its words is replaced. Raises SendError."""
        argv = [word.replace("{subject}", notification.subject) for word in self.words]
        data = notification.json if self.as_json else notification.text.encode()
        try:
            done = subprocess.run(argv, input=data, capture_output=True, timeout=COMMAND_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise SendError(f"command {argv[0]}: {error}"[:LONGEST_ERROR]) from error
        if done.returncode:
            error_text = done.stderr.decode(errors="replace").strip()
            raise SendError(f"command {argv[0]} ended with status {done.returncode}: {error_text}"[:LONGEST_ERROR])

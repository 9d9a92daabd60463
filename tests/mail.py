"""A real mail server for tests, on a port of its own, in a thread."""

from __future__ import annotations

import asyncio
import email
import email.policy
import threading
from contextlib import contextmanager

from aiosmtpd.smtp import SMTP


class Mailbox:
    """What a mail server took; ``refuses`` is what it answers instead of taking a mail, ``unknown`` whom it refuses."""

    def __init__(self):
        self.envelopes, self.refuses, self.unknown, self.port = [], "", "", 0

    async def handle_RCPT(self, server, session, envelope, address, rcpt_options):  # noqa: N802 - the server's name
        if address == self.unknown:
            return "550 no such user"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):  # noqa: N802 - the server's name
        if self.refuses:
            return self.refuses
        self.envelopes.append(envelope)
        return "250 OK"

    @property
    def mails(self):
        return [email.message_from_bytes(each.content, policy=email.policy.default) for each in self.envelopes]


@contextmanager
def mail_server():
    """Yields its mailbox."""
    box, loop = Mailbox(), asyncio.new_event_loop()
    server = loop.run_until_complete(loop.create_server(lambda: SMTP(box, hostname="here", loop=loop), "127.0.0.1", 0))
    box.port = server.sockets[0].getsockname()[1]
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield box
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        server.close()
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()

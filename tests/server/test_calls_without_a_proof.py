"""By TLS each call of a client that proves no user, sent with its hello before any welcome: none is performed."""

from __future__ import annotations

import contextlib
import datetime
import functools

import trigmon
from tests.server.test_call_rights import NEEDED, cells, daemon_with_users
from tests.tls.authorities import NOW, Site
from trigmon.client.transport import open_tcp
from trigmon.mq import calls
from trigmon.mq.replies import Listing, Refused
from trigmon.tls import passwords
from trigmon.tls.accounts import Account
from trigmon.tls.certificates import make_certificate
from trigmon.tls.contexts import client_context
from trigmon.wire import codec
from trigmon.wire.frames import FrameReader


def answered(port, context, hello, between=lambda: None):
    """The names of the rows whose call is answered by TLS, where it is sent with the hello, before any welcome."""
    names = set()
    for name, call in cells():
        bodies, reader = [], FrameReader()
        with (
            contextlib.suppress(OSError),
            open_tcp("localhost", port, 5) as link,
            context.wrap_socket(link, server_hostname="localhost") as spoken,
        ):
            spoken.sendall(codec.encode_hello(hello) + codec.encode_request(1, call))
            while len(bodies) < 2 and (data := spoken.recv(65536)):
                bodies += [bytes(body) for body in reader.feed(data)]
        if bodies and (len(bodies) > 1 or not isinstance(codec.decode_welcome(bodies[0]), Refused)):
            names.add(name)
        between()
    return names


def test_by_tls_no_call_of_who_does_not_prove_a_user_is_performed(passable, tmp_path, monkeypatch):
    monkeypatch.setattr(passwords, "_COST", 2)  # a hash of no cost: it is compared some hundred times
    monkeypatch.setattr("tests.tls.authorities.hashed", passwords.hashed)
    site = Site(tmp_path)
    for name in ("alice", "root", "mallory"):
        site.client(name)
    site.let_in(Account("alice", certificates=("CN=alice",)), Account("batch", site.password("right")))
    one = daemon_with_users(passable, site, "127.0.0.1:0")
    before = depths(one)
    site.client("foreign", by=site.foreign)
    site.client("expired", days=1, now=NOW - datetime.timedelta(days=2))
    site.save(make_certificate(site.authority, "alice", ("localhost",), NOW), "of-a-server")
    of = functools.partial(codec.Hello, protocol=codec.PROTOCOL_VERSION, client_id="0" * 32)
    wrong, nobody = of(user="batch", password="wrong"), of(user="alice")
    kinds = dict.fromkeys(("mallory", "foreign", "expired", "of-a-server", ""), of())
    found = {kind: answered(site.port, context_of(site, kind), hello) for kind, hello in kinds.items()}
    found["wrong password"] = answered(
        site.port, context_of(site), wrong, lambda: trigmon.connect(site.address(user="batch"), run_id="").disconnect()
    )
    found["another's certificate"] = answered(site.port, context_of(site, "root"), nobody)
    assert {kind: sorted(names) for kind, names in found.items() if names} == {}
    assert depths(one) == before
    assert answered(site.port, context_of(site, "alice"), of()) == NEEDED.keys()
    assert depths(one) != before
    assert len(found) * len(NEEDED) > 400


def depths(one):
    """How many messages there are, by queue."""
    with one.connect() as qm:
        return {row["name"]: row["current_q_depth"] for row in qm.ask(calls.QueueStatus(q_name="*"), Listing).rows}


def context_of(site, name=""):
    """The context of a client with this certificate, without one for no name."""
    files = [site.directory / f"{name}.{end}" for end in ("crt", "key")] if name else []
    return client_context(site.directory / "authority.crt", *files)

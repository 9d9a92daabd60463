"""The TLS listener of a real daemon: who comes in, as whom, and what a server that is none gets."""

import datetime
import socket
import ssl
import threading

import pytest

import trigmon
from tests.daemons import define
from tests.tls.authorities import NOW, Site
from tests.waiting import until
from trigmon.client.transport import open_tcp
from trigmon.mq.calls import Define, DisplayConnections, Status
from trigmon.mq.replies import Listing, Values
from trigmon.tls.accounts import Account, fingerprint
from trigmon.tls.certificates import make_certificate
from trigmon.tls.contexts import client_context
from trigmon.wire import codec

DAY = datetime.timedelta(days=1)


@pytest.fixture
def site(tmp_path):
    made = Site(tmp_path / "tls")
    made.client("alice")
    made.let_in(Account("alice", certificates=("CN=alice",)), Account("batch", made.password("secret")))
    return made


@pytest.fixture
def served(daemon, site):
    one = daemon(settings=site.settings)
    with one.connect() as qm:
        define(qm, "Q")
    return one


def user_of(address):
    """Puts and gets a message; returns the user that its descriptor names."""
    with trigmon.connect(address, application="by tls") as qm:
        qm.put("Q", b"over tls")
        with qm.open("Q", "input_shared") as q:
            return q.get().user_identifier


def refusal(address, kind=trigmon.NotAuthorized):
    with pytest.raises(kind) as refused:
        trigmon.connect(address, reconnect_s=0)
    return refused.value.about


def test_a_certificate_or_a_password_is_mapped_to_a_user_who_puts_and_gets(served, site):
    assert user_of(site.address("alice")) == "alice"
    assert user_of(site.address(user="batch")) == "batch"


def test_a_password_may_be_a_credential_of_systemd(served, site, monkeypatch):
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(site.directory))
    assert user_of(site.address() + "&user=batch&credential=password") == "batch"


@pytest.mark.parametrize("size", [1, 300_000, 3_000_000])
def test_messages_of_every_size_pass_both_ways(served, site, size):
    with trigmon.connect(site.address("alice")) as qm, qm.open("Q", "input_shared") as q:
        qm.put("Q", b"x" * size)
        assert q.get().data == b"x" * size


def test_who_is_in_no_account_is_named_and_kept_out(served, site):
    site.client("mallory")
    assert "no account has the certificate CN=mallory" in refusal(site.address("mallory"))
    assert "the user or the password is wrong" in refusal(site.address(user="nobody"))
    site.password("guess")
    assert "the user or the password is wrong" in refusal(site.address(user="batch"))
    assert "the user or the password is wrong" in refusal(site.address(user="alice"))  # who has a certificate alone
    assert "neither a certificate nor a user and password" in refusal(site.address())
    assert served.events("a password was refused")[0]["user"] == "nobody"


def test_a_certificate_speaks_for_its_own_user_alone(served, site):
    site.password("secret")
    assert "the certificate is alice's, not batch's" in refusal(site.address("alice", user="batch"))


def test_a_foreign_and_an_expired_certificate_end_the_handshake(served, site):
    kinds = (trigmon.SslInitializationError, trigmon.QMgrNotAvailable)  # the server's alert may not arrive
    site.client("alice", by=site.foreign)
    assert "not take this client's certificate" in refusal(site.address("alice"), kinds)
    site.client("alice", days=1, now=NOW - 2 * DAY)
    expired = f"not take this client's certificate: {site.directory / 'alice.crt'} expired on {(NOW - DAY).date()}"
    assert expired in refusal(site.address("alice"), trigmon.SslInitializationError)
    # A server's certificate is none of a client's.
    site.save(make_certificate(site.authority, "alice", ("localhost",), NOW), "alice")
    assert "not take this client's certificate" in refusal(site.address("alice"), kinds)
    whys = " ".join(event["why"] for event in served.events("a connection went before it began"))
    assert "self-signed" in whys or "unable to get local issuer" in whys


def test_the_certificate_of_an_authority_is_none_of_a_user(served, site):
    pair = site.self_signed("deputy")
    site.let_in(Account("deputy", certificates=("CN=deputy", fingerprint(pair.der))))
    served.wait_for_event("the files of TLS were read anew")
    until(lambda: "CN=deputy is an authority's (CA:TRUE)" in refusal_of_any_kind(site.address("deputy")))


def refusal_of_any_kind(address):
    return refusal(address, trigmon.MQError)


def test_a_client_verifies_the_name_and_the_authority_before_it_sends_anything(served, site):
    why = refusal(site.address("alice", host="127.0.0.1"), trigmon.SslInitializationError)
    assert "did not prove that it is 127.0.0.1" in why
    why = refusal(site.address("alice", authority="foreign"), trigmon.SslInitializationError)
    assert "did not prove that it is localhost" in why
    assert "authority=" in why
    with pytest.raises(trigmon.QMgrNameError):
        trigmon.connect(site.address("alice").replace("/QM1?", "/QM2?"))


def test_tls_1_2_and_plain_bytes_come_to_nothing(served, site):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(site.directory / "authority.crt")
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with socket.create_connection(("localhost", site.port), 20) as link, pytest.raises(OSError):
        context.wrap_socket(link, server_hostname="localhost")
    with socket.create_connection(("localhost", site.port), 20) as link:
        link.sendall(codec.encode_hello(codec.Hello(protocol=codec.PROTOCOL_VERSION, client_id="x")))
        with pytest.raises(OSError):
            while link.recv(4096):
                pass
            raise OSError("closed")
    assert user_of(site.address("alice")) == "alice"


def test_a_false_server_takes_no_message_and_no_password(site):
    """What listens has a certificate of another authority; it notes all that it could decrypt."""
    taken = []
    with socket.create_server(("localhost", site.port)) as listening:
        server = threading.Thread(target=site.play_false_server, args=(listening, taken, 3), daemon=True)
        server.start()
        for address in (site.address("alice"), site.address(user="batch"), site.address()):
            refusal(address, trigmon.SslInitializationError)
        server.join()
    assert taken == [b""] * 3


def test_rights_are_those_of_the_name_in_the_settings_and_root_s_are_nobody_s(daemon, site):
    for name in ("root", "carol", "dave"):
        site.client(name)
    known = [Account(name, certificates=(f"CN={name}",)) for name in ("alice", "root", "carol")]
    site.let_in(*known, Account("dave", certificates=("CN=dave",), groups=("operators",)))
    one = daemon(settings=site.settings | {"server.administrators": "carol,%operators"})

    def define_as(name):
        with trigmon.connect(site.address(name)) as qm:
            qm.call(Define(object_type="QLOCAL", name=f"OF.{name.upper()}", attributes={}))

    for name in ("alice", "root"):
        with pytest.raises(trigmon.NotAuthorized):
            define_as(name)
    for name in ("carol", "dave"):
        define_as(name)
    assert {denial["user"] for denial in one.events("not authorized")} == {"alice", "root"}


def test_files_that_change_are_in_force_without_a_restart(served, site):
    site.let_in(Account("bob", certificates=("CN=bob",)))
    site.client("bob")
    served.wait_for_event("the files of TLS were read anew")
    assert user_of(site.address("bob")) == "bob"
    assert "CN=alice" in refusal(site.address("alice"))
    (site.directory / "server.key").write_text("damaged")
    served.wait_for_event("the files of TLS cannot be used; those from before stay in force")
    assert user_of(site.address("bob")) == "bob"


def test_files_that_cannot_be_used_are_in_the_status_until_they_can(served, site):
    for name, broken in (("users.yaml", ""), ("users.yaml", "- user: ["), ("server.crt", "-----BEGIN CERT")):
        path = site.directory / name
        before = path.read_bytes()
        path.write_text(broken)
        until(lambda path=path: f"{path}" in warnings_of(served))
        assert user_of(site.address("alice")) == "alice"
        path.write_bytes(before)
        until(lambda: "stay in force" not in warnings_of(served))


def warnings_of(one):
    with one.connect() as qm:
        return " ".join(qm.ask(Status(), Values).values["warnings"])


def test_the_status_says_30_days_ahead_that_a_certificate_expires(served, site):
    assert "server.crt" not in warnings_of(served)
    site.client("alice", days=20)
    user_of(site.address("alice"))
    until(lambda: "the certificate of alice expires" in warnings_of(served))
    site.save(make_certificate(site.authority, "localhost", ("localhost",), NOW, 29), "server")
    until(lambda: "server.crt expires in 2" in warnings_of(served))
    told = {event["why"] for event in served.events("TLS needs attention")}
    assert any("server.crt" in why for why in told)
    assert len(told) == 2


def test_wrong_passwords_wait_longer_each_and_are_logged(served, site):
    site.password("guess")
    for _ in range(5):
        refusal(site.address(user="batch"))
    counts = [event["count"] for event in served.events("a password was refused")]
    assert counts[-1] == 5
    site.password("secret")
    assert user_of(site.address(user="batch")) == "batch"


def test_wrong_passwords_of_connections_that_have_gone_keep_nobody_waiting(served, site):
    site.password("guess")
    for _ in range(4):
        refusal(site.address(user="batch"))
    site.password("secret")
    context = client_context(site.directory / "authority.crt")
    links = [context.wrap_socket(open_tcp("localhost", site.port, 20), server_hostname="localhost") for _ in range(12)]
    for number, link in enumerate(links):
        hello = codec.Hello(protocol=codec.PROTOCOL_VERSION, client_id=f"eve-{number}", user="batch", password="guess")
        link.sendall(codec.encode_hello(hello))
    for link in links:
        link.close()
    assert user_of(site.address(user="batch")) == "batch"  # where each of them waited, not within 10 s


def test_a_user_by_tls_has_the_share_of_one_user(daemon, site):
    one = daemon(settings=site.settings | {"server.max_connections": 20, "server.max_connections_per_user": 3})
    with one.connect() as qm:
        define(qm, "Q")
    held = [trigmon.connect(site.address("alice")) for _ in range(3)]
    assert "alice may have 3 connections" in refusal(site.address("alice"), trigmon.MaxConnsLimitReached)
    site.password("secret")
    assert user_of(site.address(user="batch")) == "batch"
    with one.connect() as qm:
        rows = qm.ask(DisplayConnections(), Listing).rows
    assert [row["user"] for row in rows].count("alice") == 3
    for connection in held:
        connection.disconnect()
    until(lambda: user_of(site.address("alice")) == "alice")


def test_links_that_never_end_their_handshake_keep_no_user_out(daemon, site):
    one = daemon(settings=site.settings | {"server.max_connections": 40})
    with one.connect() as qm:
        define(qm, "Q")
    silent = [socket.create_connection(("localhost", site.port), 20) for _ in range(200)]
    try:
        with one.connect() as qm:
            qm.put("Q", b"by the socket")
    finally:
        for link in silent:
            link.close()
    until(lambda: user_of_or_none(site) == "alice")


def user_of_or_none(site):
    try:
        return user_of(site.address("alice"))
    except trigmon.MQError:
        return None


def test_no_secret_of_a_client_is_in_log_or_status(served, site):
    site.password("a-very-secret-word")
    refusal(site.address(user="batch"))
    hashes = site.users.read_text().partition("scrypt:")[2]
    site.password("secret")
    user_of(site.address(user="batch"))
    seen = served.log.read_text() + warnings_of(served)
    assert "a-very-secret-word" not in seen
    assert hashes[:40] not in seen
    assert "PRIVATE KEY" not in seen


def test_a_listener_without_its_files_says_what_writes_them(daemon, site):
    (site.directory / "server.crt").unlink()
    one = daemon(start=False, settings=site.settings)
    assert one.launch().wait() == 2
    assert "trigmon tls make" in one.log.read_text()


def test_accounts_that_others_may_read_are_refused_at_the_start(daemon, site):
    site.users.chmod(0o644)
    one = daemon(start=False, settings=site.settings)
    assert one.launch().wait() == 2
    assert "chmod 600" in one.log.read_text()

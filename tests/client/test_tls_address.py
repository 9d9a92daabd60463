"""Addresses of TLS and the client's file: what they say, and what is refused with a remedy."""

import contextlib
import socket
import threading

import pytest

import trigmon
from tests.tls.authorities import Site
from trigmon.client import tls
from trigmon.client.tls import TlsAddress, configured, tls_address
from trigmon.tls.accounts import Account


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("tls://mq1", TlsAddress("mq1", 1415)),
        ("tls://mq1:9/QM1", TlsAddress("mq1", 9, "QM1")),
        ("tls://[::1]:9", TlsAddress("::1", 9)),
        ("tls://mq1/QM1?authority=/a%20b", TlsAddress("mq1", 1415, "QM1", "/a b")),
        ("tls:mq1?certificate=c&key=k", TlsAddress("mq1", 1415, certificate="c", key="k")),
        ("tls:mq1?user=u&credential=c", TlsAddress("mq1", 1415, user="u", credential="c")),
    ],
)
def test_an_address_says(text, means):
    assert tls_address(text) == means


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("tls://", "tls://host:port"),
        ("tls://mq1:0", "tls://host:port"),
        ("tls://mq1:x", "tls://host:port"),
        ("tls://mq1?ca=x", "there is no ca"),
        ("tls://mq1?certificate=x", "needs its key"),
        ("tls://mq1?key=x", "its certificate"),
        ("tls://mq1?user=x", "password_file or a credential"),
        ("tls://mq1?password_file=x", "need a user"),
    ],
)
def test_a_wrong_address_is_refused_with_the_reason(text, why):
    with pytest.raises(trigmon.QMgrNameError, match=why):
        tls_address(text)


@pytest.fixture
def file(tmp_path, monkeypatch):
    path = tmp_path / "client.ini"
    monkeypatch.setenv("TRIGMON_CLIENT_FILE", str(path))
    return path


def test_the_file_gives_a_name_its_addresses_with_paths_from_its_directory(file):
    file.write_text("[QM1]\naddress = tls://mq1, tls://mq2:9\nauthority = ca.crt\nuser = alice\ncredential = pw\n")
    query = f"authority={file.parent}/ca.crt&user=alice&credential=pw"
    assert configured("QM1") == f"tls://mq1/QM1?{query},tls://mq2:9/QM1?{query}"
    assert configured("QM2") == ""


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[QM1]\naddress = tcp://mq1\n", "needs address = tls:"),
        ("[QM1]\nca = x\n", "has no ca"),
        ("QM1", "stands before"),
    ],
)
def test_a_wrong_file_is_refused_by_its_name(file, text, why):
    file.write_text(text)
    with pytest.raises(trigmon.QMgrNameError, match=why) as refused:
        configured("QM1")
    assert str(file) in refused.value.about


def test_several_hosts_are_tried_in_their_order(daemon, file, tmp_path):
    site = Site(tmp_path / "tls")
    site.client("alice")
    site.let_in(Account("alice", certificates=("CN=alice",)))
    daemon(settings=site.settings)
    names = "authority = tls/authority.crt\ncertificate = tls/alice.crt\nkey = tls/alice.key"
    file.write_text(f"[QM7]\naddress = tls://localhost:1, tls://localhost:{site.port}\n{names}\n")
    with pytest.raises(trigmon.QMgrNameError, match="the queue manager QM1 answers there, not QM7"):
        trigmon.connect("QM7")
    file.write_text(file.read_text().replace("QM7", "QM1"))
    with trigmon.connect("QM1") as qm:
        assert qm.q_mgr_name == "QM1"


def test_a_password_that_others_may_read_is_not_sent(tmp_path):
    path = tmp_path / "password"
    path.write_text("secret\n")
    path.chmod(0o640)
    address = tls_address(f"tls:mq1?user=u&password_file={path}")
    with pytest.raises(trigmon.SslInitializationError, match="chmod 600"):
        tls.password(address)
    path.chmod(0o600)
    assert tls.password(address) == "secret"


def test_where_a_host_ends_the_handshake_the_next_one_is_tried(daemon, tmp_path):
    """So does one that has no place for who has not proved a user yet."""
    site = Site(tmp_path / "tls")
    site.client("alice")
    site.let_in(Account("alice", certificates=("CN=alice",)))
    daemon(settings=site.settings)

    def close_all(listening):
        with contextlib.suppress(OSError):
            while True:
                link, _ = listening.accept()
                link.recv(65_536)
                link.close()

    with socket.create_server(("127.0.0.1", 0)) as full:
        threading.Thread(target=close_all, args=(full,), daemon=True).start()
        address = site.address("alice")
        first = address.replace(str(site.port), str(full.getsockname()[1]))
        with pytest.raises(trigmon.QMgrNotAvailable, match="closed the connection within the handshake"):
            trigmon.connect(first, reconnect_s=0)
        with trigmon.connect(f"{first},{address}", reconnect_s=0) as qm:
            assert qm.q_mgr_name == "QM1"
        full.shutdown(socket.SHUT_RDWR)

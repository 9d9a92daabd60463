"""The user and the password of an MQCSP, in the Python module: looked at by TLS alone, and shown nowhere."""

from __future__ import annotations

import ctypes

import pytest

from tests.mqi.conftest import OF_MQ, PASSWORD
from tests.mqi.mqi_program import cno, done
from trigmon.mqi import ibmmqc
from trigmon.mqi.structures import MQCD, MQCSP


@pytest.fixture
def connect(served, monkeypatch, tmp_path):
    """Connects by an address with a user and a password: returns handle, completion code and reason."""
    for name in OF_MQ:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TRIGMON_HOME", str(tmp_path))

    def connected(address, user, password, kind=1, name=b"QM1"):
        texts = [ctypes.create_string_buffer(text.encode()) for text in (user, password)]
        fields = {"AuthenticationType": kind, "CSPUserIdLength": len(user), "CSPPasswordLength": len(password)}
        addresses = {"CSPUserIdPtr": ctypes.addressof(texts[0]), "CSPPasswordPtr": ctypes.addressof(texts[1])}
        cd = MQCD.pack({"Version": 11, "ConnectionName": address.encode()[:264]})
        return ibmmqc.MQCONNX(name, cno(), cd, MQCSP.pack(fields | addresses), None, None)

    return connected


@pytest.fixture
def by_file(connect, site, monkeypatch):
    """The same by the client's file, whose addresses are of TLS."""
    file = site.directory / "client.ini"
    keys = "authority = authority.crt\ncertificate = alice.crt\nkey = alice.key\n"
    file.write_text(f"[QM1]\naddress = tls://localhost:1, tls://localhost:{site.port}\n{keys}")
    monkeypatch.setenv("TRIGMON_CLIENT_FILE", str(file))
    return lambda *arguments, **named: connect("mq.example.com(1414)", *arguments, **named)


def user_of(hconn, served):
    """Returns the user of a connection's put, and ends it."""
    from tests.mqi.mqi_program import md_with, od, pmo_with

    done(ibmmqc.MQPUT1(hconn, od("Q"), md_with({}), pmo_with(0), b"x"))
    assert ibmmqc.MQDISC(hconn) == (0, 0)
    with served.connect() as qm, qm.open("Q", "input_shared") as queue:
        return queue.get().user_identifier


def test_the_right_password_comes_in_as_its_user_in_the_place_of_the_certificate(by_file, served):
    hconn, *answer = by_file("batch", PASSWORD)
    assert answer == [0, 0]
    assert user_of(hconn, served) == "batch"
    hconn, *answer = by_file("batch", PASSWORD, kind=0)
    assert user_of(hconn, served) == "alice"


def test_a_wrong_one_is_2035_and_no_line_shows_it(by_file, tmp_path, served):
    ibmmqc.MQLOGCF(1, str(tmp_path / "log"))
    for user, password in (("batch", "guess"), ("nobody", PASSWORD), ("alice", PASSWORD)):
        assert by_file(user, password)[1:] == (2, 2035)
    ibmmqc.MQLOGCF(0)
    written = (tmp_path / "log").read_text()
    assert "the user or the password is wrong" in written
    assert PASSWORD not in written and "guess" not in written
    assert PASSWORD not in served.log.read_text()


def test_on_this_machine_the_socket_says_who_it_is(connect, served):
    hconn, *answer = connect(served.address, "batch", "guess")
    assert answer == [0, 0]
    assert ibmmqc.MQDISC(hconn) == (0, 0)


def test_an_mqcsp_that_is_none_is_2595(served):
    for csp in (b"XXXX" + MQCSP.pack()[4:], b"CSP ", MQCSP.pack({"AuthenticationType": 1, "CSPUserIdLength": -1})):
        assert ibmmqc.MQCONNX(b"QM1", cno(), None, csp, None, None)[1:] == (2, 2595)

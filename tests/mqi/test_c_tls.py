"""The C library by TLS, against a real listener: who comes in, and what a server that is none gets."""

from __future__ import annotations

import ctypes
import datetime
import json
import os
import re
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.mqi.conftest import OF_MQ, PASSWORD
from tests.mqi.mqi_calls import INPUT, OUTPUT, WAIT, Block, Mqi, MqiError
from tests.tls.authorities import NOW, Site
from trigmon.mqi import library
from trigmon.mqi.structures import MQCD
from trigmon.tls.accounts import Account
from trigmon.tls.certificates import make_certificate

WRONG, NOT_PROVED, NOT_THERE, OTHER_NAME = 2035, 2393, 2059, 2058


@pytest.fixture
def mqi(loaded, tmp_path, monkeypatch):
    """The calls, in a home without a queue manager: what is reached is reached by TLS."""
    for name in OF_MQ:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TRIGMON_HOME", str(tmp_path))
    return Mqi(loaded)


@pytest.fixture
def at(mqi, monkeypatch):
    """Connects where an address says: ``at(address, options=...)``."""

    def connect(address, **named):
        monkeypatch.setenv("TRIGMON_QMGR", address)
        return mqi.connect("", **named)

    return connect


class Csp:
    """The connect options with an MQCSP: a user and a password."""

    def __init__(self, user, password, kind=1):
        self.user, self.password = (ctypes.create_string_buffer(text.encode()) for text in (user, password))
        self.csp = Block(
            "MQCSP",
            1,
            AuthenticationType=kind,
            CSPUserIdPtr=ctypes.addressof(self.user),
            CSPUserIdLength=len(user),
            CSPPasswordPtr=ctypes.addressof(self.password),
            CSPPasswordLength=len(password),
        )
        self.options = Block("MQCNO", 5, Options=0x40, SecurityParmsPtr=ctypes.addressof(self.csp.memory))
        self.options.points_to = self  # what it points to lives as long


def refused(call, *arguments, **named):
    with pytest.raises(MqiError) as raised:
        call(*arguments, **named)
    return raised.value.reason


def user_of(mqi, hconn, data=b"over tls"):
    """Puts and gets a message; returns the user that its descriptor names."""
    hobj = mqi.open(hconn, "Q", INPUT | OUTPUT)
    mqi.put(hconn, hobj, data)
    got = mqi.get(hconn, hobj, room=len(data))
    assert got.data == data
    mqi.disconnect(hconn)
    return got.md.UserIdentifier


@pytest.mark.parametrize("size", [1, 300_000, 3_000_000])
def test_messages_of_every_size_pass_both_ways_as_the_user_of_the_certificate(served, site, mqi, at, size):
    assert user_of(mqi, at(site.address("alice")), b"x" * size) == "alice"


def test_a_waiting_get_is_woken_by_a_put(served, site, mqi, at):
    hconn = at(site.address("alice"), options=Block("MQCNO", 1, Options=0x40))
    hobj, came = mqi.open(hconn, "Q", INPUT), []
    gmo = Block("MQGMO", Options=WAIT, WaitInterval=-1)
    waiting = threading.Thread(target=lambda: came.append(mqi.get(hconn, hobj, gmo=gmo).data))
    waiting.start()
    with served.connect() as qm:
        qm.put("Q", b"woken")
    waiting.join(60)
    assert came == [b"woken"]
    mqi.disconnect(hconn)


def test_a_password_is_that_of_the_address_or_of_the_mqcsp(served, site, mqi, at):
    assert user_of(mqi, at(site.address(user="batch"))) == "batch"
    assert user_of(mqi, at(site.address(), options=Csp("batch", PASSWORD).options)) == "batch"
    # The program's own user comes before the address's certificate.
    assert user_of(mqi, at(site.address("alice"), options=Csp("batch", PASSWORD).options)) == "batch"
    assert user_of(mqi, at(site.address("alice"), options=Csp("batch", PASSWORD, kind=0).options)) == "alice"


def test_a_wrong_password_and_no_proof_at_all_are_2035(served, site, mqi, at):
    for user, password in (("batch", "guess"), ("nobody", PASSWORD), ("alice", "guess")):
        assert refused(at, site.address(), options=Csp(user, password).options) == WRONG
    assert refused(at, site.address()) == WRONG
    site.client("mallory")
    assert refused(at, site.address("mallory")) == WRONG


def test_an_mqcsp_that_is_none_is_2595(served, site, at):
    for change in (b"XXX ", b"CSP \x09\0\0\0"):
        given = Csp("batch", PASSWORD)
        given.csp.memory[: len(change)] = change
        assert refused(at, site.address(), options=given.options) == 2595
    given = Csp("batch", PASSWORD)
    ctypes.c_int32.from_buffer(given.csp.memory, 28).value = -1
    assert refused(at, site.address(), options=given.options) == 2595


def test_on_this_machine_the_socket_says_who_it_is_and_a_password_is_not_looked_at(served, mqi, monkeypatch):
    monkeypatch.setenv("TRIGMON_HOME", str(served.home))
    mqi.disconnect(mqi.connect("QM1", options=Csp("batch", "guess").options))


def test_the_server_proves_its_name_by_the_authority_that_is_named(served, site, at, monkeypatch):
    assert refused(at, site.address("alice", host="127.0.0.1")) == NOT_PROVED
    assert refused(at, site.address("alice", authority="foreign")) == NOT_PROVED
    assert refused(at, f"tls://localhost:{site.port}/QM1") == NOT_PROVED
    assert refused(at, site.address("alice").replace("/QM1?", "/QM2?")) == OTHER_NAME
    monkeypatch.setenv("SSL_CERT_FILE", str(site.directory / "authority.crt"))  # the machine's own list
    assert refused(at, f"tls://localhost:{site.port}/QM1") == WRONG


def test_a_certificate_of_another_authority_comes_to_nothing(served, site, at):
    site.save(make_certificate(site.foreign, "eve", (), NOW, 10), "eve")
    assert refused(at, site.address("eve")) in (NOT_PROVED, NOT_THERE)  # the server's alert may not arrive


def test_files_and_addresses_that_cannot_be_used_are_refused(served, site, at):
    (site.directory / "empty.crt").write_text("")
    assert refused(at, site.address("alice", authority="empty")) == NOT_PROVED
    assert refused(at, site.address("alice", authority="nowhere")) == NOT_PROVED
    assert refused(at, site.address("alice").replace("alice.key", "server.key")) == NOT_PROVED
    site.password(PASSWORD)
    (site.directory / "password").chmod(0o644)
    assert refused(at, site.address(user="batch")) == NOT_PROVED
    (site.directory / "password").chmod(0o600)
    for wrong in (
        "tls://",
        "tls://h:0",
        "tls://h:x",
        "tls://h?ca=x",
        "tls://h?key=x",
        "tls://h?user=x",
        "tls://u@h",
        "tcp://h",
    ):
        assert refused(at, wrong) == OTHER_NAME


def test_a_false_server_takes_no_message_and_no_password(site, at):
    """What listens has a certificate of another authority, or speaks no TLS; it notes all that it could read."""
    taken = []

    def serve(listening):
        site.play_false_server(listening, taken, 3)
        link, _ = listening.accept()
        with link:
            link.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            taken.append(PASSWORD.encode() in link.recv(65_536))

    with socket.create_server(("localhost", 0)) as listening:
        port = str(listening.getsockname()[1])
        server = threading.Thread(target=serve, args=(listening,), daemon=True)
        server.start()
        address = site.address(user="batch").replace(str(site.port), port)
        for named in ({}, {"options": Csp("batch", PASSWORD).options}, {}, {}):
            assert refused(at, address, **named) == NOT_PROVED
        server.join(60)
    assert taken == [b""] * 3 + [False]


def test_the_client_s_file_and_mq_s_own_ways_name_the_queue_manager(served, site, mqi, monkeypatch, tmp_path):
    file = site.directory / "client.ini"
    keys = "authority = authority.crt\ncertificate: alice.crt\nkey = alice.key\n"
    addresses = f"tls://localhost:1,\n  tls://localhost:{site.port}\n"
    file.write_text(f"# of tests\n[OTHER]\naddress = tls://localhost\n[QM1]\naddress = {addresses}{keys}")
    monkeypatch.setenv("TRIGMON_CLIENT_FILE", str(file))
    assert user_of(mqi, mqi.connect("QM1")) == "alice"
    assert refused(mqi.connect, "OTHER") == NOT_THERE
    assert refused(mqi.connect, "QM9") == NOT_THERE
    monkeypatch.setenv("MQSERVER", "CHANNEL/TCP/mq.example.com(1414)")
    assert user_of(mqi, mqi.connect("QM1")) == "alice"
    monkeypatch.setenv("MQSERVER", f"CHANNEL/TCP/{site.address('alice')}")
    assert user_of(mqi, mqi.connect("*ANY")) == "alice"
    monkeypatch.delenv("MQSERVER")
    host = {"connection": [{"host": "mq.example.com", "port": 1414}], "queueManager": "QM1"}
    security = {"cipherSpecification": "ANY_TLS13"}
    table = {"channel": [{"name": "A", "clientConnection": host, "transmissionSecurity": security}]}
    (tmp_path / "ccdt.json").write_text(json.dumps(table, indent=2))
    monkeypatch.setenv("MQCCDTURL", (tmp_path / "ccdt.json").as_uri())
    assert user_of(mqi, mqi.connect("QM1")) == "alice"
    monkeypatch.delenv("MQCCDTURL")
    raw = MQCD.pack({"Version": 11, "ConnectionName": b"mq.example.com(1414)", "SSLCipherSpec": b"ANY_TLS13"})
    channel = ctypes.create_string_buffer(raw)
    cno = Block("MQCNO", 2, Options=0x40, ClientConnPtr=ctypes.addressof(channel))
    assert user_of(mqi, mqi.connect("QM1", options=cno)) == "alice"
    for wrong in ("[QM1]\naddress = tcp://localhost\n", "[QM1]\nca = x\n", "[QM1]\nuser = x\naddress = tls://h\n"):
        file.write_text(wrong)
        assert refused(mqi.connect, "QM1") == OTHER_NAME


PROGRAM = """
import ctypes, os, signal, sys
sys.path.insert(0, os.getcwd())
from tests.mqi.mqi_calls import Block, Mqi
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
mqi = Mqi(ctypes.CDLL(sys.argv[1]))
"""


def run(mqi, code, address, **env):
    """Runs a program that has the library loaded, which is to connect by its environment."""
    argv = [sys.executable, "-W", "ignore", "-c", PROGRAM + code, mqi.loaded._name]
    env = os.environ | {"TRIGMON_QMGR": address} | env
    return subprocess.Popen(
        argv, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_a_forked_child_ends_without_its_parent_s_connection(served, site, mqi):
    code = """
hconn = mqi.connect("")
hobj = mqi.open(hconn, "Q", 0x12)
if os.fork() == 0:
    print(mqi.call("MQCMIT", hconn), flush=True)
    os._exit(0)
os.wait()
mqi.put(hconn, hobj, b"after the fork")
print(mqi.get(hconn, hobj).data)
mqi.disconnect(hconn)
"""
    with run(mqi, code, site.address("alice")) as program:
        assert program.communicate(timeout=60)[0] == "(2, 2018)\nb'after the fork'\n"


def test_a_lost_server_is_2009_and_no_signal(daemon, site, mqi, tmp_path):
    other = Site(tmp_path / "tls")
    other.client("alice")
    other.let_in(Account("alice", certificates=("CN=alice",)))
    one = daemon(settings=other.settings)
    code = """
hconn = mqi.connect("")
print("connected", flush=True)
sys.stdin.readline()
message = (Block("MQOD", ObjectName="Q"), Block("MQMD"), Block("MQPMO"), 100000, bytes(100000))
print([mqi.call("MQPUT1", hconn, *message) for _ in range(3)])
"""
    with run(mqi, code, other.address("alice")) as program:
        assert program.stdout.readline() == "connected\n"
        one.kill()
        assert program.communicate("\n", timeout=60)[0] == "[(2, 2009), (2, 2009), (2, 2009)]\n"
        assert program.returncode == 0


@pytest.mark.parametrize("kind", ["none", "too old"])
def test_without_openssl_3_the_reason_is_2393_and_a_line_says_what_is_missing(served, site, mqi, tmp_path, kind):
    false = tmp_path / "libssl.so.3"
    if kind == "none":
        false.write_text("")
    else:
        argv = [library.compiler(), "-shared", "-fPIC", "-o", false, "-x", "c", "-"]
        subprocess.run(argv, input="int OPENSSL_init_ssl(void) { return 0; }", text=True, check=True)
    code = "print(mqi.call('MQCONN', b''.ljust(48), ctypes.byref(ctypes.c_int32())))"
    traced = {"LD_LIBRARY_PATH": str(tmp_path), "TRIGMON_MQI_TRACE": "1"}
    with run(mqi, code, site.address("alice"), **traced) as program:
        said, told = program.communicate(timeout=60)
    assert said == "(2, 2393)\n"
    assert ("TLS needs OpenSSL 3" if kind == "none" else "libssl.so.3 has no TLS_client_method: it is too old") in told


def test_where_its_own_certificate_has_expired_a_line_says_so(served, site, mqi):
    site.client("alice", days=1, now=NOW - datetime.timedelta(days=2))
    code = "print(mqi.call('MQCONN', b''.ljust(48), ctypes.byref(ctypes.c_int32())))"
    with run(mqi, code, site.address("alice"), TRIGMON_MQI_TRACE="1") as program:
        said, told = program.communicate(timeout=60)
    assert said in ("(2, 2393)\n", "(2, 2059)\n")  # the server's alert may not arrive
    day = (NOW - datetime.timedelta(days=1)).date()
    assert f"alice.crt: this client's certificate expired on {day}" in told


def writable_memory(pid):
    """Yields what lies in each part of a process's memory that it may write to."""
    maps = Path(f"/proc/{pid}/maps").read_text()
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:  # noqa: PTH123 - read at its places
        for begin, end in re.findall(r"^([0-9a-f]+)-([0-9a-f]+) rw", maps, re.MULTILINE):
            memory.seek(int(begin, 16))
            yield memory.read(int(end, 16) - int(begin, 16))


@pytest.mark.parametrize("by", ["csp", "file"])
def test_no_password_is_left_in_memory_nor_in_the_trace(served, site, mqi, library_directory, tmp_path, by):
    program, source = tmp_path / "secret", Path(__file__).parent / "secret.c"
    flags = ["-O1", "-Wall", "-Werror", f"-I{library.SOURCES}", f"-L{library_directory}"]
    subprocess.run([library.compiler(), *flags, "-o", program, source, "-lmqm_r"], check=True)
    site.password(PASSWORD)
    address = site.address() if by == "csp" else site.address(user="batch")
    env = os.environ | {"LD_LIBRARY_PATH": str(library_directory), "TRIGMON_QMGR": address, "TRIGMON_MQI_TRACE": "1"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([program], env=env, **pipes) as one:
        one.stdin.write(PASSWORD.encode() if by == "csp" else b"-")
        one.stdin.flush()
        assert one.stdout.readline() == b"0\n"
        assert not [part for part in writable_memory(one.pid) if PASSWORD.encode() in part]
        assert PASSWORD.encode() not in one.communicate(timeout=60)[1]

"""Room that one takes from all, frames that make no sense, and listeners that seem the queue manager."""

from __future__ import annotations

import shutil
import socket
import threading
from contextlib import suppress

from tests.attacks.stage import CONNECTIONS
from tests.attacks.table import MEMBER, MONITOR, STRANGER, TCP, add
from tests.waiting import until
from trigmon.mq import calls
from trigmon.mq.enums import OpenOption
from trigmon.mq.errors import MQError
from trigmon.wire import codec
from trigmon.wire.frames import frame

# -- room -------------------------------------------------------------------------------------------------------


def _plain(place):
    """A connected socket by the attacker's own door, kept open."""
    if place.address.startswith("tcp"):
        link = socket.create_connection(("127.0.0.1", place.port), 10)
    else:
        link = socket.socket(socket.AF_UNIX)
        link.settimeout(10)
        link.connect(str(place.socket))
    place.held.append(link)
    return link


def _until_refused(place, count, take):
    """Takes so much, or all there is."""
    with suppress(MQError, OSError):
        for number in range(count):
            take(number)
    return len(place.held)


def _connections(place, _):
    return _until_refused(place, CONNECTIONS + 60, lambda _: place.held.append(place.connect()))


def _silent(place, _):
    return _until_refused(place, CONNECTIONS + 60, lambda _: _plain(place))


def _half_frames(place, _):
    hello = codec.encode_hello(codec.Hello(protocol=codec.PROTOCOL_VERSION, client_id="x"))
    return _until_refused(place, CONNECTIONS + 60, lambda _: _plain(place).send(hello[:7]))


def _handles(place, _):
    place.held.append(qm := place.connect())
    opens = calls.Open(object_name="PUBLIC.Q", options=int(OpenOption.INPUT_SHARED))
    with suppress(MQError):
        qm.pipeline([opens] * 3000)


def _dynamic(place, _):
    place.held.append(qm := place.connect())
    model = {"object_name": "SYSTEM.DEFAULT.MODEL.QUEUE", "options": int(OpenOption.OUTPUT)}
    with suppress(MQError):
        qm.pipeline([calls.Open(dynamic_q_name="ATTACK.*", **model)] * 600)


def _uncommitted(place, _):
    place.held.append(qm := place.connect())
    with suppress(MQError):
        for _number in range(24):
            qm.put("PUBLIC.Q", b"x" * 4_000_000, syncpoint=True)


def _waiting(place, _):
    def take(_number):
        place.held.append(qm := place.connect())
        handle = qm.open("SPARE.Q", "input_shared").handle
        qm._transport.send(calls.Get(handle=handle, options=1, wait_interval_ms=-1))

    return _until_refused(place, 40, take)


def _exclusive(place, _):
    place.held.append(qm := place.connect())
    with suppress(MQError):
        qm.open("SYSTEM.DEFAULT.LOCAL.QUEUE", "input_exclusive")


def rest(place, _):
    """Nothing: what the last try held has been let go by then."""


def _rested(stage, who):
    """Waits until the queue manager has seen that nothing is held any more."""
    stage.actors[who].ask("rest")
    until(stage.is_served)


for _who in (MEMBER, TCP):
    for _name, _attempt, _tries in (
        ("connections", _connections, "open all the connections there are"),
        ("silent", _silent, "open connections and say nothing"),
        ("half-hellos", _half_frames, "open connections and send half a hello"),
        ("handles", _handles, "open 3000 handles"),
        ("dynamic", _dynamic, "make 600 queues from a model"),
        ("uncommitted", _uncommitted, "put 96 MB in a unit of work that stays open"),
        ("waiting", _waiting, "wait in 40 gets"),
        ("exclusive", _exclusive, "open a queue exclusively"),
    ):
        add(
            _name,
            _who,
            _tries,
            "another member cannot connect, put and get",
            _attempt,
            lambda stage, said, _: not stage.is_served(),
            prepare=lambda stage, w=_who: _rested(stage, w),
        )


def good_client(place, _):
    """What a member does: a connection, a queue of its own, a put and a get."""
    with place.connect() as qm, qm.open("SYSTEM.DEFAULT.MODEL.QUEUE", "input_shared", "output") as q:
        q.put(b"good")
        return q.get().data


# -- frames -------------------------------------------------------------------------------------------------------

_GOOD = codec.encode_hello(codec.Hello(protocol=codec.PROTOCOL_VERSION, client_id="0" * 32))
FRAMES = {
    "hello-too-long": (b"\x00\x40\x00\x00",),
    "hello-4-gib": (b"\xff\xff\xff\xff",),
    "hello-nothing": (frame(b""),),
    "hello-noise": (frame(b"\xc1\xff\x00" * 40),),
    "hello-http": (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",),
    "hello-version": (codec.encode_hello(codec.Hello(protocol=99, client_id="x")),),
    "hello-long-names": (codec.encode_hello(codec.Hello(protocol=1, client_id="x" * 14_000, application="y" * 900)),),
    "hello-nested": (frame(b"\x91" * 4000),),
    "hello-twice": (_GOOD, _GOOD),
    "frame-4-gib": (_GOOD, b"\xff\xff\xff\xff"),
    "frame-half": (_GOOD, b"\x00\x01\x00\x00x"),
    "frame-nothing": (_GOOD, frame(b"")),
    "frame-nested": (_GOOD, frame(b"\x91" * 100_000)),
    "frame-bomb": (_GOOD, frame(b"\xdd\xff\xff\xff\xff")),
    "frame-map-keys": (_GOOD, frame(b"\x92\x01\x92\xa3set\x81\x80\x80")),
    "frame-lost-connection": (_GOOD, frame(b"\x92\x01\x91\xaflost_connection")),
    "number-again": (_GOOD, codec.encode_request(1, calls.Ping()), codec.encode_request(1, calls.Ping())),
    "ahead": (_GOOD, *(codec.encode_request(number, calls.Status()) for number in range(1, 400))),
}


def _send(place, frames):
    link = _plain(place)
    with suppress(OSError):
        for one in frames:
            link.sendall(one)
        link.shutdown(socket.SHUT_WR)
        while link.recv(1 << 16):
            pass


def _is_harmed(stage, said, _):
    return (
        stage.daemon.process.poll() is not None
        or not stage.is_served()
        or stage.daemon.events("a call failed by a bug")
    )


for _who in (MEMBER, TCP):
    for _name, _frames in FRAMES.items():
        add(
            f"wire-{_name}",
            _who,
            f"bytes that no good client sends: {_name}",
            "the queue manager ends, or serves another no more",
            lambda place, _, f=_frames: _send(place, f),
            _is_harmed,
        )

# -- listeners that seem the queue manager ------------------------------------------------------------------------

WORD = b"salary list"


def _answer(listener, place, name):
    """Takes what clients say, as a queue manager would, and keeps it."""
    welcome = codec.encode_welcome(codec.Welcome(protocol=codec.PROTOCOL_VERSION, q_mgr_name="QM1"))
    with suppress(OSError):
        while True:
            link, _ = listener.accept()
            link.settimeout(5)
            with suppress(OSError):
                link.recv(1 << 16)
                link.sendall(welcome)
                (place.open / name).write_bytes(link.recv(1 << 16))
            link.close()


def _listen(place, listener, name):
    listener.listen()
    place.held.append(listener)
    threading.Thread(target=_answer, args=(listener, place, name), daemon=True).start()


def _squat_tcp(place, host, name):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family)
    listener.bind((host, 0))
    _listen(place, listener, name)
    shown = f"[{host}]" if ":" in host else host
    return f"tcp://{shown}:{listener.getsockname()[1]}"


def _squat_unix(place, name):
    """A directory where that user's own runtime directory would be."""
    directory = place.victims_runtime
    directory.mkdir(mode=0o755)
    (directory / "SQUAT").mkdir(mode=0o755)
    path = directory / "SQUAT" / "mq.sock"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    path.chmod(0o777)
    _listen(place, listener, name)
    return "SQUAT"


def trusting_client(place, address):
    """A member that puts something of worth to the queue manager at this address."""
    import trigmon

    with suppress(MQError, OSError):
        trigmon.connect(address, application="victim", run_id="", timeout_s=5).put("PAY", WORD)


def _was_told(stage, said, name):
    """Whether the member's message came to the attacker."""
    if isinstance(said, str):
        stage.actors["other"].ask("trusting client", said)
    kept = stage.home / "open" / name
    return kept.exists() and WORD in kept.read_bytes()


for _who in (STRANGER, MONITOR):
    for _host in ("127.0.0.1", "127.0.0.2", "::1"):
        _file = f"{_who}.{_host}"
        add(
            f"listen-{_host}",
            _who,
            f"listen on a port of {_host} that a member's TRIGMON_QMGR names",
            "the member's message comes there",
            lambda place, _, h=_host, f=_file: _squat_tcp(place, h, f),
            lambda stage, said, _, f=_file: _was_told(stage, said, f),
        )
for _who in (STRANGER, MONITOR):
    add(
        "listen-runtime",
        _who,
        "make the runtime directory that another user does not have yet, with a socket in it",
        "the member's message comes there",
        lambda place, _, f=f"{_who}.runtime": _squat_unix(place, f),
        lambda stage, said, _, f=f"{_who}.runtime": _was_told(stage, said, f),
        prepare=lambda stage: shutil.rmtree(stage.others_runtime, ignore_errors=True),
    )

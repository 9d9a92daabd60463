"""A queue for each test on the file's queue manager, and peers that no queue manager would be."""

import contextlib
import itertools
import socket
import threading

import pytest

from tests.daemons import define
from trigmon.wire import codec
from trigmon.wire.frames import FrameReader

ALL = ("input_shared", "output", "browse", "inquire", "set")
WELCOME = codec.encode_welcome(codec.Welcome(protocol=codec.PROTOCOL_VERSION, q_mgr_name="QM1"))
_numbers = itertools.count(1)


def depth(queue):
    """Returns the number of messages on an open queue."""
    return queue.inquire("current_q_depth")["current_q_depth"]


@pytest.fixture
def q_name(qm):
    """The name of a queue of the test's own."""
    name = f"TEST.{next(_numbers)}"
    define(qm, name, max_q_depth=100_000)
    return name


@pytest.fixture
def queue(qm, q_name):
    """The test's queue, open for everything."""
    with qm.open(q_name, *ALL) as opened:
        yield opened


@pytest.fixture
def peer(tmp_path):
    """Makes somebody who listens and answers by a script of bytes: the address to connect to.

    The first entry answers the hello, each further one a call; after the last it hangs up.
    """
    with contextlib.ExitStack() as ends:

        def make(*script):
            path = tmp_path / "peer.sock"
            listening = ends.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            listening.bind(str(path))
            listening.listen()
            thread = threading.Thread(target=_play, args=(listening, script))
            thread.start()
            ends.callback(thread.join, 10)
            return f"unix:{path}"

        yield make


def _play(listening, script):
    link, _ = listening.accept()
    with link:
        reader, bodies = FrameReader(), []
        for said in script:
            while not bodies:
                if not (data := link.recv(65536)):
                    return
                bodies += reader.feed(data)
            bodies.pop(0)
            link.sendall(said)

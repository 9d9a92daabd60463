"""A monitor that dies at a chosen point: between its process and the world stands a proxy that counts and kills.

Nothing in the monitor knows of it. Every message in either direction, to the queue manager or to the keeper, is a
point: a request that is not passed on was never sent, a reply that is not passed on was never heard.
"""

from __future__ import annotations

import select
import signal
import socket
import struct
import threading


class Road:
    """One connection through the proxy: both its ends, and how its bytes are cut into messages."""

    def __init__(self, monitor, world, cut):
        self.ends = {monitor: world, world: monitor}
        self.rest = {monitor: b"", world: b""}
        self.cut = cut

    def messages(self, end):
        """Returns the whole messages that came from one end; None when it has closed."""
        try:
            data = end.recv(1 << 16)
        except OSError:
            data = b""
        if not data:
            return None
        whole, self.rest[end] = self.cut(self.rest[end] + data)
        return whole


def frames(data):
    """Returns the whole frames of the queue manager's protocol, and the rest."""
    whole = []
    while len(data) >= 4 and len(data) >= (end := 4 + struct.unpack_from(">I", data)[0]):
        whole.append(data[:end])
        data = data[end:]
    return whole, data


def lines(data):
    """Returns the whole lines of the keeper's protocol, and the rest."""
    *whole, rest = data.split(b"\n")
    return [one + b"\n" for one in whole], rest


class Proxy:
    """Listens in place of the queue manager and of the keeper; ``point`` is the message at which ``victim`` dies."""

    def __init__(self):
        self.count = 0
        self.point = None
        self.victim = None
        self._listeners = {}
        self._roads = {}
        self._stop = socket.socketpair()
        self._thread = threading.Thread(target=self._run)

    def forward(self, listener, connect, cut):
        """Connects each client of ``listener`` to the socket that ``connect()`` returns."""
        self._listeners[listener] = (connect, cut)

    def start(self):
        self._thread.start()

    def end(self):
        self._stop[1].close()
        self._thread.join()
        for one in (self._stop[0], *self._listeners, *self._roads):
            one.close()

    def arm(self, point):
        """Counts anew, up to this message; None for never."""
        self.point, self.count = point, 0

    def _run(self):
        while True:
            ready, _, _ = select.select([self._stop[0], *self._listeners, *self._roads], [], [])
            for one in ready:
                if one is self._stop[0]:
                    return
                if one in self._listeners:
                    self._accept(one)
                elif one in self._roads:
                    self._pass_on(one)

    def _accept(self, listener):
        connect, cut = self._listeners[listener]
        monitor, world = listener.accept()[0], connect()
        road = Road(monitor, world, cut)
        self._roads |= {monitor: road, world: road}

    def _pass_on(self, end):
        road = self._roads[end]
        whole = road.messages(end)
        for message in whole or ():
            self.count += 1
            if self.count == self.point:
                self.victim.send_signal(signal.SIGKILL)
                self.victim.wait()
                whole = None
                break
            try:
                road.ends[end].sendall(message)
            except OSError:
                whole = None
                break
        if whole is None:
            for one in road.ends:
                del self._roads[one]
                one.close()

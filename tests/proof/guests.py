"""Clients on the simulated network: the frames, numbers and patience that the client library has on a socket."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from tests.proof.clients import CUT, LINK, Client, Gone, Pause, Talk
from tests.proof.loop import Loop, Timer
from tests.proof.network import Link
from trigmon.mq.calls import Call, Disconnect
from trigmon.mq.replies import Refused, Reply
from trigmon.wire import codec
from trigmon.wire.frames import FrameReader, ProtocolError

PATIENCE_MS = 2_000
TRY_AGAIN_MS = 50


class World(Protocol):
    """What is around a client."""

    loop: Loop

    def connect(self, heard: Callable[[bytes], None], lost: Callable[[], None]) -> Link | None:
        """A link to the daemon, if it runs."""

    def new_client_id(self, who: str) -> str:
        """One that nobody had."""


class Guest:
    """One client, played over links."""

    def __init__(self, world: World, client: Client, life: Talk | None = None) -> None:
        self.client = client
        self.is_over = False
        self.link: Link | None = None
        self._world = world
        self._life = life or client.life()
        self._awaited: list[int] = []
        self._replies: list[Reply] = []
        self._want: Any = None
        self._sequence = 0
        self._is_greeted = False
        self._alarm: Timer | None = None

    def begin(self) -> None:
        """Its life begins."""
        self._want = next(self._life)
        self._take_up()

    def _go_on(self, with_what: Any) -> None:
        self._awaited, self._replies = [], []
        if self._alarm is not None:
            self._alarm.cancel()
        try:
            self._want = self._life.throw(with_what) if isinstance(with_what, Gone) else self._life.send(with_what)
        except StopIteration:
            self.is_over = True
            self.drop()
        else:
            self._take_up()

    def _take_up(self) -> None:
        want, loop = self._want, self._world.loop
        if isinstance(want, Pause):
            loop.after(want.ms, lambda: self._go_on(None))
        elif want == LINK:
            self.drop()
            loop.after(TRY_AGAIN_MS if self.client.client_id else 1, self._connect)
        elif want == CUT:
            self.drop()
            loop.after(0, lambda: self._go_on(Gone()))
        elif self.link is None:
            loop.after(0, lambda: self._go_on(Gone()))
        else:
            self._send(want if isinstance(want, list) else [want])

    # -- links --------------------------------------------------------------------------------------------

    def drop(self) -> None:
        """The link is ended without a word."""
        link, self.link = self.link, None
        if link is not None:
            link.drop()

    def _connect(self) -> None:
        box: list[Link] = []
        link = self._world.connect(
            lambda data: self._heard(box[0], data),
            lambda: self._lost(box[0]),
        )
        if link is None:
            self._go_on(Gone())
            return
        box.append(link)
        self.link = link
        self._reader = FrameReader()
        self._sequence = 0
        self._is_greeted = False
        self._client_id = self._world.new_client_id(self.client.who)
        hello = codec.Hello(protocol=codec.PROTOCOL_VERSION, client_id=self._client_id, application=self.client.who)
        self._alarm = self._world.loop.after(PATIENCE_MS, self._give_up)
        link.send(codec.encode_hello(hello))

    def _give_up(self) -> None:
        """Nothing came; or what came was no part of the conversation."""
        self.drop()
        self._go_on(Gone())

    def _lost(self, link: Link) -> None:
        if link is not self.link:
            return
        self.link = None
        if self._awaited or not self._is_greeted:
            self._go_on(Gone())

    # -- calls --------------------------------------------------------------------------------------------

    def _send(self, calls: list[Call]) -> None:
        assert self.link is not None
        frames = []
        for call in calls:
            self._sequence += 1
            self._awaited.append(self._sequence)
            frames.append(codec.encode_request(self._sequence, call))
        waits = [getattr(call, "wait_interval_ms", 0) for call in calls]
        if min(waits) >= 0:
            self._alarm = self._world.loop.after(PATIENCE_MS + max(waits), self._give_up)
        self.link.send(b"".join(frames))

    def _heard(self, link: Link, data: bytes) -> None:
        if link is not self.link:
            return
        try:
            for body in self._reader.feed(data):
                if link is self.link:
                    self._take_in(bytes(body))
        except ProtocolError:
            self._break()

    def _take_in(self, body: bytes) -> None:
        if not self._is_greeted:
            if isinstance(codec.decode_welcome(body), Refused):
                raise ProtocolError("not let in")
            self._is_greeted = True
            self._go_on(self._client_id)
            return
        sequence, reply = codec.decode_response(body)
        if not self._awaited or sequence != self._awaited[0]:
            raise ProtocolError("not the call that was due")
        self._awaited.pop(0)
        self._replies.append(reply)
        if self._awaited:
            return
        if isinstance(self._want, Disconnect) and not isinstance(reply, Refused):
            self.drop()
        self._go_on(self._replies if isinstance(self._want, list) else reply)

    def _break(self) -> None:
        was_waiting = self._awaited or not self._is_greeted
        self.drop()
        if was_waiting:
            self._go_on(Gone())

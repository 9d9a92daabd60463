"""A client's link to a queue manager in this process, for tests that drive it as a program would."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from trigmon.mq.calls import Call
from trigmon.mq.errors import ConnectionBroken, MQError, MsgTooBigForQMgr
from trigmon.mq.replies import Refused, Reply
from trigmon.simulate.in_process import InProcess
from trigmon.wire import codec
from trigmon.wire.frames import Body


class InProcessLink:
    """What a connection speaks to instead of a socket: each call is encoded and read again, as on a wire.

    ``after`` is called when a call was performed, before its reply is there. ``lock`` is held meanwhile: links of
    several threads may share a queue manager.
    """

    def __init__(
        self,
        q_mgr_name: str,
        stage: InProcess,
        application: str,
        after: Callable[[], None],
        lock: AbstractContextManager[object],
    ) -> None:
        self.where = f"{q_mgr_name} in memory"
        self.broken = ""
        self.welcome = codec.Welcome(protocol=codec.PROTOCOL_VERSION, q_mgr_name=q_mgr_name, administrator=True)
        self._after = after
        self._stage = stage
        self._lock = lock
        with lock:
            self._session = stage.connect(application, administrator=True)
        self.client_id = self._session.identity.client_id
        self._replies: dict[int, Reply] = {}
        self._sequence = 0

    def send(self, call: Call, *, is_sound: bool = False) -> int:
        """Performs a call and keeps its reply for :meth:`receive`. It goes through the codec, sound or not."""
        body = codec.encode_request(self._sequence + 1, call)[4:]
        if len(body) > self.welcome.frame_limit:
            raise MsgTooBigForQMgr(f"a call of {len(body)} bytes, where at most {self.welcome.frame_limit} are read")
        reply = codec.decode_response(self.exchange(body)[4:])[1]
        self._sequence += 1
        self._replies[self._sequence] = reply
        return self._sequence

    def exchange(self, body: Body) -> bytes:
        """Performs the call in the body of a frame and returns the frame of its reply. Raises ConnectionBroken."""
        sequence, call = codec.decode_request(body)
        with self._lock:
            if self.broken:
                raise ConnectionBroken(self.broken)
            try:
                reply = self._stage.ask(self._session, call)
            except MQError as error:
                reply = Refused(reason=int(error.reason), about=error.about)
            self._after()
        return codec.encode_response(sequence, reply)

    def receive(self, sequence: int) -> Reply:
        """Returns the reply to the call of that number."""
        return self._replies.pop(sequence)

    def close(self) -> None:
        """Closes the connection; it is lost, unless a Disconnect went before."""
        with self._lock:
            if not self.broken:
                self.broken = f"the connection to {self.where} has ended"
                self._stage.lose(self._session)
                self._after()

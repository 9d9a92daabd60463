"""What every peer is: a server that was found, started in a directory of its own, and clients that speak to it.

A peer promises the same as a queue manager with persistent messages: what was answered is on disk.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

QUEUE, UNITS = "bench", "units"
"""The queue that holds the depth of a cell, and the one for units of work, which is emptied behind each turn."""


class Client(abc.ABC):
    """A connection of one client process; each call returns when its outcome is durable."""

    @abc.abstractmethod
    def put(self, body: bytes) -> None:
        """Puts one message."""

    @abc.abstractmethod
    def get(self) -> bytes:
        """Gets the first message, which is gone with that."""

    @abc.abstractmethod
    def put_unit(self, bodies: Sequence[bytes]) -> None:
        """Puts many: one unit of work where the peer knows that, else all sent ahead of their answers."""

    def confirmed_get(self) -> bytes:
        """Gets a message that comes back if the client ends before it confirms; confirms it."""
        return self.get()

    @abc.abstractmethod
    def close(self) -> None:
        """Ends the connection."""


class Peer(abc.ABC):
    """A server that runs; made with a directory that is its own, and ended by :meth:`end`."""

    name: ClassVar[str]
    durable_by: ClassVar[str]
    """How it is made to answer only what is on disk."""
    remark: ClassVar[str] = ""
    """What is not equal all the same."""

    @classmethod
    @abc.abstractmethod
    def why_absent(cls) -> str:
        """Returns why it cannot be measured here; nothing when it can."""

    @abc.abstractmethod
    def __init__(self, home: Path) -> None: ...

    @abc.abstractmethod
    def connect(self, queue: str = QUEUE) -> Client:
        """Connects a client that puts to this queue and gets from it."""

    @abc.abstractmethod
    def empty(self, queue: str) -> None:
        """Removes what is on this queue."""

    @abc.abstractmethod
    def cpu_seconds(self) -> float | None:
        """Returns the CPU seconds of all its processes so far; None where the work is done in the clients."""

    @abc.abstractmethod
    def end(self) -> None:
        """Ends all its processes."""

"""Linux's inotify, which says in which directory something has happened.

One descriptor serves all watches: the kernel has a small limit of descriptors for each user
(fs.inotify.max_user_instances). Names and kinds of events are not looked at. The directory itself says what is there,
so a queue of events that overflows is only a reason to look everywhere.
"""

from __future__ import annotations

import ctypes
import os
import struct

_libc = ctypes.CDLL(None, use_errno=True)
_ATTRIB, _CLOSE_WRITE, _MOVED_TO, _CREATE = 0x4, 0x8, 0x80, 0x100
_DELETE_SELF, _MOVE_SELF, _Q_OVERFLOW, _IGNORED, _ONLYDIR = 0x400, 0x800, 0x4000, 0x8000, 0x1000000
_MASK = _ATTRIB | _CLOSE_WRITE | _MOVED_TO | _CREATE | _DELETE_SELF | _MOVE_SELF | _ONLYDIR
_EVENT = struct.Struct("iIII")
_BUFFER = 65_536

EVERYWHERE = -1
"""In place of a number: events were lost."""


class Inotify:
    """The descriptor. :meth:`add` may be called from any thread. Raises OSError where the kernel gives none."""

    def __init__(self) -> None:
        self.fd = _checked(_libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC), "inotify")

    def add(self, directory: str) -> int:
        """Returns the number of a directory, the same as before for one that was added before. Raises OSError."""
        path = os.fsencode(directory)
        return _checked(_libc.inotify_add_watch(self.fd, path, _MASK), directory)

    def happened(self) -> set[int]:
        """Returns the directories in which something happened since it was last asked."""
        try:
            data = os.read(self.fd, _BUFFER)
        except BlockingIOError:
            return set()
        found, at = set(), 0
        while at < len(data):
            number, mask, _, length = _EVENT.unpack_from(data, at)
            at += _EVENT.size + length
            if not mask & _IGNORED:
                found.add(EVERYWHERE if mask & _Q_OVERFLOW else number)
        return found


def _checked(result: int, subject: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), subject)
    return result

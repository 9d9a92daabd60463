"""The files of a run's output: the end of each, and what is written behind it, as text."""

from __future__ import annotations

import codecs
import os
import stat
from pathlib import Path
from typing import NamedTuple

STREAMS = ("stdout", "stderr")
TAIL = 64 * 1024
PART = 64 * 1024
"""So many bytes of a file are read at a time."""


class Piece(NamedTuple):
    """A part of a file as text; ``end`` is the offset behind it. ``is_cut``: something stands before it."""

    text: str
    end: int
    is_cut: bool = False


def tail_of(directory: str, stream: str) -> Piece:
    """Returns the end of a file. Raises OSError where it is not on this host, or is not readable for this user."""
    with _opened(directory, stream) as file:
        length = os.fstat(file.fileno()).st_size
        start = max(0, length - TAIL)
        file.seek(start)
        text, end = _decoded(file.read(TAIL), start)
    if start:
        text = text.partition("\n")[2] or text
    return Piece(text, end, bool(start))


def read_from(directory: str, stream: str, offset: int) -> Piece:
    """Returns what stands behind an offset, a part of it at a time. Raises OSError."""
    with _opened(directory, stream) as file:
        file.seek(max(0, offset))
        return Piece(*_decoded(file.read(PART), max(0, offset)))


def _opened(directory: str, stream: str):  # type: ignore[no-untyped-def]  # noqa: ANN202
    """Opens a file of the run's directory that is a file, and no link to another one."""
    if not directory:
        raise OSError("the run wrote no files")
    if not Path(directory).is_dir():
        raise OSError(f"{directory} is not on this host")
    number = os.open(Path(directory) / stream, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(f"{directory}/{stream} is no file")
    return os.fdopen(number, "rb")


def _decoded(data: bytes, start: int) -> tuple[str, int]:
    """Returns the text of bytes and the offset behind it; a character that is not whole yet is left for later."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(data)
    pending = len(decoder.getstate()[0])
    if pending and pending == len(data):  # nothing else came: the rest of it may never come
        text, pending = data.decode("utf-8", "replace"), 0
    return text, start + len(data) - pending

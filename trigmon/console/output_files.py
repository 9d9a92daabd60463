"""The files of a run's output, for every console: the end of each, and what is written behind it, as text.

They lie in a directory of the run's user, who may have put anything there. A link is not followed, and what is no file
is not read: a pipe without a writer would be waited for.
"""

from __future__ import annotations

import codecs
import os
import stat
from pathlib import Path
from typing import BinaryIO, NamedTuple

STREAMS = ("stdout", "stderr")
TAIL = 64 * 1024
PART = 64 * 1024
"""So many bytes of a file are read at a time."""


class Piece(NamedTuple):
    """A part of a file as text; ``end`` is the offset behind it. ``is_cut``: something stands before it."""

    text: str
    end: int
    is_cut: bool = False


def opened_output(directory: str, stream: str) -> BinaryIO:
    """Opens a file of the run's directory for reading.

    Raises FileNotFoundError where the stream has no file, another OSError where the directory is not on this host, or
    the file is a link, no file, or not readable for this user.
    """
    if not directory:
        raise OSError("the run wrote no files")
    try:
        Path(directory).stat()
    except FileNotFoundError:
        raise OSError(f"{directory} is not on this host") from None
    path = Path(directory) / stream
    number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(f"{path} is no file")
    return os.fdopen(number, "rb")


def why_not(error: OSError) -> str:
    """Returns why a file of a run's output cannot be read, for a person."""
    return f"{error.filename}: {error.strerror}" if error.strerror else str(error)


def tail_of(directory: str, stream: str) -> Piece:
    """Returns the end of a file. Raises OSError as :func:`opened_output`."""
    with opened_output(directory, stream) as file:
        length = os.fstat(file.fileno()).st_size
        start = max(0, length - TAIL)
        file.seek(start)
        text, end = _decoded(file.read(TAIL), start)
    if start:
        text = text.partition("\n")[2] or text
    return Piece(text, end, bool(start))


def read_from(directory: str, stream: str, offset: int) -> Piece:
    """Returns what stands behind an offset, a part of it at a time. Raises OSError as :func:`opened_output`."""
    with opened_output(directory, stream) as file:
        file.seek(max(0, offset))
        return Piece(*_decoded(file.read(PART), max(0, offset)))


def start_of_last_lines(file: BinaryIO, lines: int) -> int:
    """Returns the offset at which the last so many lines begin; it reads from the end, a part at a time."""
    end = start = file.seek(0, os.SEEK_END)
    if not lines:
        return end
    left = lines
    while start:
        length = min(PART, start)
        start -= length
        file.seek(start)
        part = file.read(length)
        at = length
        while (at := part.rfind(b"\n", 0, at)) >= 0:
            begin = start + at + 1
            left -= begin < end  # what ends the last line begins none
            if not left:
                return begin
    return 0


def _decoded(data: bytes, start: int) -> tuple[str, int]:
    """Returns the text of bytes and the offset behind it; a character that is not whole yet is left for later."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(data)
    pending = len(decoder.getstate()[0])
    if pending and pending == len(data):  # nothing else came: the rest of it may never come
        text, pending = data.decode("utf-8", "replace"), 0
    return text, start + len(data) - pending

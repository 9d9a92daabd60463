"""What a person sees while the demo plays: lines that stay, and on a terminal one line that moves."""

from __future__ import annotations

import time
from typing import TextIO

_CLEAR = "\r\x1b[K"
_BAR = 30
_EVERY_S = 0.1


class Screen:
    """Writes to ``stream``; progress is only shown where somebody watches it move."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._moves = stream.isatty()
        self._shown_at = 0.0

    def line(self, text: str = "") -> None:
        """Prints a line that stays."""
        self._stream.write((_CLEAR if self._moves else "") + text + "\n")
        self._stream.flush()

    def moving(self, text: str) -> None:
        """Prints a line that the next one replaces, at most ten a second."""
        if self._moves and time.monotonic() - self._shown_at >= _EVERY_S:
            self._shown_at = time.monotonic()
            self._stream.write(_CLEAR + text)
            self._stream.flush()

    def progress(self, text: str, done: int, total: int) -> None:
        """Shows a bar for ``done`` of ``total``."""
        full = _BAR * done // max(total, 1)
        self.moving(f"{text} [{'#' * full}{'.' * (_BAR - full)}] {done} of {total}")

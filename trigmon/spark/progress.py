"""The progress line of a drain on a terminal, for a job that is run by hand."""

from __future__ import annotations

import shutil
import sys
import time

_CLEAR = "\r\x1b[K"


class Line:
    """The progress line, rewritten for each batch, on standard error; ``is_wanted`` False: never.

    Where standard output or standard error is no terminal, as under a monitor, nothing is written.
    """

    def __init__(self, q_name: str, *, is_wanted: bool = True) -> None:
        self.is_shown = is_wanted and sys.stdout.isatty() and sys.stderr.isatty()
        self._q_name = q_name
        self._began = time.monotonic()
        self._is_there = False

    def show(self, batches: int, rows: int, waiting: int, reservation: int, reserved: int) -> None:
        """Writes the line: what was settled, what is on the queue and, unless its number is 0, what is reserved."""
        if not self.is_shown:
            return
        rate = rows / max(time.monotonic() - self._began, 1e-3)
        done = f"{batches:,} batch{'' if batches == 1 else 'es'}, {rows:,} rows, {rate:,.0f} rows/s"
        held = f", {reserved:,} in reservation {reservation}" if reservation else ""
        text = f"{self._q_name}: {done}; {waiting:,} left on the queue{held}"
        self._write(_CLEAR + text[: shutil.get_terminal_size().columns - 1])
        self._is_there = True

    def clear(self) -> None:
        """Clears the line for other output; the next :meth:`show` writes it anew."""
        if self._is_there:
            self._write(_CLEAR)
            self._is_there = False

    def end(self) -> None:
        """Ends the line, so that further output begins below it."""
        if self._is_there:
            self._write("\n")
            self._is_there = False

    def _write(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()

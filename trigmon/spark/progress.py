"""One line on a terminal that tells how far a drain is, for who runs one by hand; nothing where nobody watches."""

from __future__ import annotations

import shutil
import sys
import time

_CLEAR = "\r\x1b[K"


class Line:
    """The line, rewritten as batches come and go, on standard error; ``is_wanted`` False: never.

    Where standard output or standard error is no terminal, as under a monitor, nothing is written.
    """

    def __init__(self, q_name: str, *, is_wanted: bool = True) -> None:
        self.is_shown = is_wanted and sys.stdout.isatty() and sys.stderr.isatty()
        self._q_name = q_name
        self._began = time.monotonic()
        self._is_there = False

    def show(self, batches: int, rows: int, waiting: int, reservation: int, reserved: int) -> None:
        """How it stands: what was settled, what waits on the queue and, unless its number is 0, what is reserved."""
        if not self.is_shown:
            return
        rate = rows / max(time.monotonic() - self._began, 1e-3)
        done = f"{batches:,} batch{'' if batches == 1 else 'es'}, {rows:,} rows, {rate:,.0f} rows/s"
        held = f", {reserved:,} in reservation {reservation}" if reservation else ""
        text = f"{self._q_name}: {done}; {waiting:,} left on the queue{held}"
        self._write(_CLEAR + text[: shutil.get_terminal_size().columns - 1])
        self._is_there = True

    def clear(self) -> None:
        """Makes room for another line; the next :meth:`show` writes this one anew."""
        if self._is_there:
            self._write(_CLEAR)
            self._is_there = False

    def end(self) -> None:
        """The line stays as it is, and what is written next stands below."""
        if self._is_there:
            self._write("\n")
            self._is_there = False

    def _write(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()

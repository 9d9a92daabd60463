"""The states of a run: the words of the ledger, of its listings, and of who asks for them."""

from __future__ import annotations

from typing import Final

HELD: Final = "held"
DUE: Final = "due"
STARTED: Final = "started"
SERVING: Final = "serving"
DRAINED: Final = "drained"
EXITED: Final = "exited"
FAILED: Final = "failed"
UNKNOWN: Final = "unknown"
CANCELLED: Final = "cancelled"
JOINED: Final = "joined"

STATES: Final = (HELD, DUE, STARTED, SERVING, DRAINED, EXITED, FAILED, UNKNOWN, CANCELLED, JOINED)
WITH_PROGRAM: Final = frozenset({DUE, STARTED, SERVING, DRAINED})
"""It has a program, or may have one."""
OPEN: Final = frozenset({HELD}) | WITH_PROGRAM
"""It has not ended."""

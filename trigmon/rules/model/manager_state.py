"""State that only the queue manager's process knows, for the replies that show it."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from trigmon.mq.explanation import Looked


class ManagerState(msgspec.Struct, frozen=True):
    """The process of a queue manager as it is now. Times are milliseconds since 1970."""

    started_ms: int
    waiting_gets: int
    warnings: list[str]  # of how it is run
    news: int  # how often there was news for monitors
    last_verdicts: Callable[[str], list[Looked]]  # of a queue, newest first

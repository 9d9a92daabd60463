"""Why a daemon does not start, and the exit statuses of one that ends."""

from __future__ import annotations

STOPPED = 0
MISCONFIGURED = 2
IN_USE = 5
STORE_LOST = 6
STORE_BROKEN = 70
"""EX_SOFTWARE of sysexits.h: what became of the last calls is unknown until the store is opened again."""


class CannotStart(Exception):  # noqa: N818 - it says what happened, as the reasons of MQ do
    """The daemon cannot start; ``exit_status`` is what the process ends with, the text is for its operator."""

    def __init__(self, text: str, exit_status: int = MISCONFIGURED) -> None:
        super().__init__(text)
        self.exit_status = exit_status

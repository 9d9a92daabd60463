"""How a function of the MQI ends: what it gives, its completion code and its reason; never by a trigmon exception."""

from __future__ import annotations

import functools
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from trigmon.mq.errors import MQError
from trigmon.mqi.layout import Structure
from trigmon.mqi.mqi_numbers import MqiError, MqiReason

Answer = tuple[Any, ...]
Call = Callable[..., Answer]
FAILED: Final = 2


class error(Exception):  # noqa: N801, N818 - the C module's own name
    """An argument is of a kind or a length that the function does not take."""


class Log:
    """Where it is written why calls failed, which a reason alone does not tell."""

    def __init__(self) -> None:
        self._file = ""
        self._is_on = False

    def set(self, *, is_on: bool, file: str) -> None:
        """Turns it on or off; a file of no name is standard error."""
        self._is_on, self._file = is_on, file

    def write(self, about: str) -> None:
        """Writes why a call failed."""
        if not self._is_on:
            return
        if self._file in ("", "stderr"):
            sys.stderr.write(f"trigmon.mqi: {about}\n")
            return
        with suppress(OSError), open(self._file, "a", encoding="utf-8") as file:  # noqa: PTH123 - one module less
            file.write(f"trigmon.mqi: {about}\n")


LOG = Log()


def answering(failed: Call = lambda *_: ()) -> Callable[[Call], Call]:
    """Makes a function of the MQI of one that returns its results and the reason of a warning, 0 for none.

    ``failed`` gives the results of a call that failed, from its arguments.
    """

    def decorated(work: Call) -> Call:
        @functools.wraps(work)
        def answered(*arguments: Any) -> Answer:
            try:
                *results, reason = work(*arguments)
            except MQError as mq_error:
                comp_code, reason = int(mq_error.comp_code), int(mq_error.reason)
                LOG.write(f"{work.__name__}: {mq_error}")
            except MqiError as mqi_error:
                comp_code, reason = mqi_error.comp_code, mqi_error.reason
                LOG.write(f"{work.__name__}: {reason}: {mqi_error}")
            except (TypeError, ValueError, OverflowError, struct.error) as unexpected:
                comp_code, reason = FAILED, int(MqiReason.UNEXPECTED_ERROR)
                LOG.write(f"{work.__name__}: {type(unexpected).__name__}: {unexpected}")
            else:
                return (*results, 1 if reason else 0, reason)
            return (*failed(*arguments), comp_code, reason)

        return answered

    return decorated


def check(given: bytes, structure: Structure) -> None:
    """Raises error for a structure that has not its length."""
    if len(given) != structure.size:
        raise error(f"{structure.name} wrong size. Given: {len(given)}, expected {structure.size}")


def characters(given: str | bytes | None) -> str:
    """Returns a name that was given as text, as bytes that may end by a null, or not at all."""
    if isinstance(given, bytes):
        return given.partition(b"\0")[0].decode(errors="replace")
    return given or ""

"""What MQ's commands have in common: options as getopt reads them, and the connection to a queue manager by name."""

from __future__ import annotations

import getopt
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from trigmon.client.connection import Connection


class MqUsageError(Exception):
    """An option or an argument that the command does not take, or one too few."""


class Given(NamedTuple):
    """The options of a command line, in their order and each with its value or "", and the words between them."""

    options: list[tuple[str, str]]
    words: list[str]

    def has(self, letter: str) -> bool:
        """Returns whether an option is given."""
        return any(name == letter for name, _ in self.options)

    def value(self, letter: str, default: str = "") -> str:
        """Returns the value of an option, of several the last."""
        return next((value for name, value in reversed(self.options) if name == letter), default)

    def values(self, letter: str) -> list[str]:
        """Returns every value of an option."""
        return [value for name, value in self.options if name == letter]

    def word(self, position: int) -> str:
        """Returns an argument that is no option, "" where there are fewer."""
        return self.words[position] if position < len(self.words) else ""

    def number(self, letter: str, default: int, most: int = 999_999_999) -> int:
        """Returns the value of an option that is a whole number. Raises MqUsageError."""
        text = self.value(letter, str(default))
        if not text.isdecimal() or int(text) > most:
            raise MqUsageError(f"-{letter} {text} is no number from 0 to {most}")
        return int(text)


def read(arguments: Sequence[str], letters: str, *, words: int = 0, least: int = 0) -> Given:
    """Returns the options that ``letters`` names as getopt has it, and up to ``words`` words, ``least`` at least.

    Raises MqUsageError.
    """
    try:
        options, rest = getopt.gnu_getopt(list(arguments), letters)
    except getopt.GetoptError as error:
        raise MqUsageError(str(error)) from None
    if len(rest) > words:
        raise MqUsageError(f"{rest[words]} is one word too many")
    if len(rest) < least:
        raise MqUsageError("required parameter missing")
    return Given([(name.removeprefix("-"), value) for name, value in options], rest)


@contextmanager
def connected(q_mgr_name: str, command: str, timeout_s: float = 10.0) -> Iterator[Connection]:
    """Yields a connection to a queue manager by its name, or to the one that is meant where the name is blank.

    A program that a monitor started knows the address of its queue manager, though it may not be found by its name.
    Raises QMgrNameError, QMgrNotAvailable, NotAuthorized.
    """
    from trigmon.client.address import connect
    from trigmon.mq.errors import QMgrNameError

    name = q_mgr_name.strip()
    with connect(address_of(name), application=command, timeout_s=timeout_s) as connection:
        if name not in ("", connection.q_mgr_name):
            raise QMgrNameError(f"{name}: the queue manager {connection.q_mgr_name} answers")
        yield connection


def address_of(name: str) -> str | None:
    """Returns what to connect to: ``TRIGMON_QMGR`` where it is the address of the only one that can be meant."""
    from trigmon import paths

    started_by = os.environ.get("TRIGMON_QMGR", "")
    is_address = ":" in started_by
    if not name or (is_address and not os.path.lexists(paths.find_socket(name))):
        return started_by if name and is_address else None
    return name

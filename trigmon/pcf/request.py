"""The parameters of a command: taken one by one, by number, each checked for what it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NoReturn

from trigmon.mq.calls import Call
from trigmon.mq.replies import Reply
from trigmon.pcf.numbers import Parameter, PcfReason
from trigmon.pcf.structures import Filter, Group, PcfError, PcfMessage, Value
from trigmon.pcf.structures import Parameter as NumberAndValue

Ask = Callable[[Call], Reply]
"""Performs a call of the command's user. Raises MQError for a refusal."""
Parameters = list[NumberAndValue]
Answers = Iterator[Parameters | None]
"""The parameters of each reply message; None where a slice of the work is done, and calls may come between."""

_WRONG: dict[str, PcfReason] = {
    "int": PcfReason.CFIN_PARM_ID_ERROR,
    "str": PcfReason.CFST_PARM_ID_ERROR,
    "bytes": PcfReason.CFBS_PARM_ID_ERROR,
    "ints": PcfReason.CFIL_PARM_ID_ERROR,
    "strs": PcfReason.CFSL_PARM_ID_ERROR,
    "Group": PcfReason.CFGR_PARM_ID_ERROR,
    "filter of int": PcfReason.CFIF_PARM_ID_ERROR,
    "filter of str": PcfReason.CFSF_PARM_ID_ERROR,
    "filter of bytes": PcfReason.CFBF_PARM_ID_ERROR,
}
_TWICE: dict[str, PcfReason] = {
    "int": PcfReason.CFIN_DUPLICATE_PARM,
    "str": PcfReason.CFST_DUPLICATE_PARM,
    "bytes": PcfReason.CFBS_DUPLICATE_PARM,
    "ints": PcfReason.CFIN_DUPLICATE_PARM,
    "strs": PcfReason.CFSL_DUPLICATE_PARM,
    "Group": PcfReason.CFGR_PARM_ID_ERROR,
}


def _form(value: Value) -> str:
    """Returns what kind of structure a value came in."""
    if isinstance(value, Filter):
        return f"filter of {type(value.value).__name__}"
    if isinstance(value, tuple):
        return "strs" if value and isinstance(value[0], str) else "ints"
    return type(value).__name__


def not_known(number: int, value: Value) -> PcfError:
    """Returns the error of a parameter that the command has not, or not in this form."""
    return PcfError(_WRONG[_form(value)], f"parameter {number} does not belong here", number)


class CommandFailedError(Exception):
    """A command fails with a reason of MQ's; what it had to say up to there is answered with it.

    ``why`` is blank for an inquiry that found nothing: that is an answer, and no refusal.
    """

    def __init__(self, reason: int, why: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.why = why


class Request:
    """The parameters of one command that were not taken yet. Raises PcfError for two of one number."""

    def __init__(self, message: PcfMessage) -> None:
        self.command = message.command
        self.filters: list[tuple[int, Filter]] = []
        self.rest: dict[int, Value] = {}
        for number, value in message.parameters:
            if isinstance(value, Filter):
                self.filters.append((number, value))
            elif number in self.rest:
                raise PcfError(_TWICE[_form(value)], f"parameter {number} twice", number)
            else:
                self.rest[number] = value
        if len(self.filters) > 1:
            raise PcfError(PcfReason.TOO_MANY_FILTERS, f"{len(self.filters)} filters", self.filters[1][0])

    def text(self, number: int) -> str:
        """Returns a text that the command must have. Raises PcfError."""
        found = self.optional_text(number)
        if found is None:
            self._missing(number)
        return found

    def optional_text(self, number: int) -> str | None:
        """Returns a text without the blanks and zeros behind it, None where it is not given."""
        value = self.rest.pop(number, None)
        if value is None:
            return None
        if not isinstance(value, str):
            raise not_known(number, value)
        return value.rstrip(" \0")

    def integer(self, number: int) -> int:
        """Returns an integer that the command must have. Raises PcfError."""
        if number not in self.rest:
            self._missing(number)
        return self.optional_integer(number, 0)

    def optional_integer(self, number: int, default: int) -> int:
        """Returns an integer, or the default."""
        value = self.rest.pop(number, default)
        if not isinstance(value, int):
            raise not_known(number, value)
        return value

    def integers(self, number: int) -> tuple[int, ...] | None:
        """Returns a list of integers, of which one alone may come as an integer; None where it is not given."""
        value = self.rest.pop(number, None)
        if value is None:
            return None
        if isinstance(value, int):
            return (value,)
        if not isinstance(value, tuple):
            raise not_known(number, value)
        numbers = tuple(each for each in value if isinstance(each, int))
        if len(numbers) != len(value):
            raise not_known(number, value)
        return numbers

    def texts(self, number: int) -> tuple[str, ...]:
        """Returns a list of texts, empty where it is not given; a list of nothing has no type."""
        value = self.rest.pop(number, ())
        if isinstance(value, str):
            return (value.rstrip(" \0"),)
        found = tuple(each for each in value if isinstance(each, str)) if isinstance(value, tuple) else ()
        if not isinstance(value, tuple) or len(found) != len(value):
            raise not_known(number, value)
        return found

    def flag(self, number: int) -> bool:
        """Returns a parameter that is 1 for yes and 0 for no; no where it is not given. Raises PcfError."""
        value = self.optional_integer(number, 0)
        if value not in (0, 1):
            raise PcfError(PcfReason.PARM_VALUE_ERROR, f"parameter {number} is 0 or 1, not {value}", number)
        return bool(value)

    def filter(self) -> tuple[int, Filter] | None:
        """Returns the filter, if there is one."""
        return self.filters.pop() if self.filters else None

    def nothing_more(self) -> None:
        """Raises PcfError where anything was not taken. A COMMAND_SCOPE that is blank asks for nothing."""
        if self.rest.get(Parameter.COMMAND_SCOPE) in ("", None):
            self.rest.pop(Parameter.COMMAND_SCOPE, None)
        for number, value in (*self.rest.items(), *self.filters):
            raise not_known(number, value)

    @staticmethod
    def _missing(number: int) -> NoReturn:
        raise PcfError(PcfReason.PARM_COUNT_TOO_SMALL, f"parameter {number} is missing", number)


def filter_fits(wanted: Filter, found: Value | None) -> bool:
    """Returns whether a value fits a filter; one that an object has not does not. Raises PcfError for the operator.

    The operators are MQCFOP_*: a sum of less (1), equal (2), greater (4), like (18), contains (10), and with generic
    names (26); the opposites are the sums that are left.
    """
    if found is None:
        return False
    if isinstance(found, tuple):
        return _contains(wanted, found)
    if isinstance(wanted.value, int) != isinstance(found, int) or isinstance(found, Group | Filter):
        return False
    if wanted.operator in (_LIKE, _NOT_LIKE) and isinstance(found, str) and isinstance(wanted.value, str):
        return _is_like(found, wanted.value) is (wanted.operator == _LIKE)
    if wanted.operator not in _COMPARES:
        is_number = isinstance(wanted.value, int)
        wrong = PcfReason.CFIF_OPERATOR_ERROR if is_number else PcfReason.CFSF_OPERATOR_ERROR
        raise PcfError(wrong, f"operator {wanted.operator}")
    return _compared(found, wanted.value) in _COMPARES[wanted.operator]


_LIKE, _NOT_LIKE = 18, 21
_COMPARES = {1: (-1,), 2: (0,), 4: (1,), 6: (0, 1), 5: (-1, 1), 3: (-1, 0)}
_CONTAINS, _EXCLUDES, _CONTAINS_GEN, _EXCLUDES_GEN = 10, 13, 26, 29


def _compared(found: Value, wanted: Value) -> int:
    if isinstance(found, str) and isinstance(wanted, str):
        left, right = found.rstrip(" \0"), wanted.rstrip(" \0")
        return (left > right) - (left < right)
    if isinstance(found, int) and isinstance(wanted, int):
        return (found > wanted) - (found < wanted)
    return 0 if found == wanted else 1


def _is_like(found: str, pattern: str) -> bool:
    wanted = pattern.rstrip(" \0")
    text = found.rstrip(" \0")
    return text.startswith(wanted[:-1]) if wanted.endswith("*") else text == wanted


def _contains(wanted: Filter, found: tuple[int, ...] | tuple[str, ...]) -> bool:
    if wanted.operator in (_CONTAINS, _EXCLUDES):
        has = any(_compared(each, wanted.value) == 0 for each in found)
    elif wanted.operator in (_CONTAINS_GEN, _EXCLUDES_GEN) and isinstance(wanted.value, str):
        has = any(isinstance(each, str) and _is_like(each, wanted.value) for each in found)
    else:
        raise PcfError(PcfReason.CFSF_OPERATOR_ERROR, f"operator {wanted.operator} of a list")
    return has is (wanted.operator in (_CONTAINS, _CONTAINS_GEN))

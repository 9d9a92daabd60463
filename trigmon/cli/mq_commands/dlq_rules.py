"""The rules table of ``runmqdlq``: read, checked, and matched against a dead letter. Nothing here asks anybody.

Sources: MQ's pages on the rules table, its conventions and its keywords.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum
from functools import partial
from typing import NamedTuple

from trigmon.mq.descriptors import DeadLetterHeader, MessageDescriptor
from trigmon.mq.enums import ApplType, Feedback, MsgType, Persistence
from trigmon.mq.reasons import Reason

DEST_Q, REPLY_Q = "&DESTQ", "&REPLYQ"
MOST = 999_999_999
_CONTROL = ("INPUTQ", "INPUTQM", "RETRYINT", "WAIT")
_ACTIONS = ("DISCARD", "IGNORE", "RETRY", "FWD")
_ACTION_KEYWORDS = ("ACTION", "FWDQ", "FWDQM", "HEADER", "PUTAUT", "RETRY")
_PAIR = re.compile(r"[\s,]*([A-Za-z]+)\s*\(\s*((?:'(?:[^']|'')*'|[^')]*?))\s*\)[\s,]*")

Field = Callable[[MessageDescriptor, DeadLetterHeader], "str | int"]
_TEXTS: dict[str, Field] = {
    "APPLIDAT": lambda md, dlh: md.appl_identity_data,
    "APPLNAME": lambda md, dlh: md.put_appl_name,
    "DESTQ": lambda md, dlh: dlh.dest_q_name,
    "DESTQM": lambda md, dlh: dlh.dest_q_mgr_name,
    "FORMAT": lambda md, dlh: dlh.format,
    "REPLYQ": lambda md, dlh: md.reply_to_q,
    "REPLYQM": lambda md, dlh: md.reply_to_q_mgr,
    "USERID": lambda md, dlh: md.user_identifier,
}
_NUMBERS: dict[str, tuple[Field, tuple[type[IntEnum], ...]]] = {
    "APPLTYPE": (lambda md, dlh: md.put_appl_type, (ApplType,)),
    "FEEDBACK": (lambda md, dlh: md.feedback, (Feedback, Reason)),
    "MSGTYPE": (lambda md, dlh: md.msg_type, (MsgType,)),
    "PERSIST": (lambda md, dlh: md.persistence, (Persistence,)),
    "REASON": (lambda md, dlh: dlh.reason, (Reason, Feedback)),
}
_PREFIXES: dict[type[IntEnum], str] = {
    Reason: "MQRC_",
    Feedback: "MQFB_",
    ApplType: "MQAT_",
    MsgType: "MQMT_",
    Persistence: "MQPER_",
}


class RulesTableError(Exception):
    """A fault of the table; the text names the line."""


class Rule(NamedTuple):
    """One rule: tests that all hold for what it is about, and what is then done, up to ``attempts`` times."""

    line: int
    tests: tuple[Callable[[MessageDescriptor, DeadLetterHeader], bool], ...]
    action: str
    to_q_name: str
    to_q_mgr_name: str
    keeps_header: bool
    attempts: int

    def fits(self, descriptor: MessageDescriptor, header: DeadLetterHeader) -> bool:
        """Returns whether a dead letter is one that the rule is about."""
        return all(test(descriptor, header) for test in self.tests)


class RulesTable(NamedTuple):
    """The control data and the rules; ``wait_s`` None waits for ever, 0 not at all."""

    input_q: str
    input_q_mgr: str
    retry_interval_s: int
    wait_s: int | None
    rules: tuple[Rule, ...]


def read_table(lines: Iterable[str]) -> RulesTable:
    """Returns the table of these lines. Raises RulesTableError."""
    control: dict[str, str] = {}
    rules: list[Rule] = []
    for number, text in _entries(lines):
        words = _words(number, text)
        if not rules and not control and words.keys() <= set(_CONTROL):
            control = words
        else:
            rules.append(_rule(number, words))
    if not rules:
        raise RulesTableError("the table has no rule")
    wait = control.get("WAIT", "YES").upper()
    return RulesTable(
        control.get("INPUTQ", ""),
        control.get("INPUTQM", ""),
        _number(0, "RETRYINT", control.get("RETRYINT", "60")),
        {"YES": None, "NO": 0}[wait] if wait in ("YES", "NO") else _number(0, "WAIT", wait),
        tuple(rules),
    )


def _entries(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yields the entries with the number of their first line.

    ``+`` at the end of a line goes on at the next line's text, ``-`` at its first column. Comments begin with an
    asterisk, also between the lines of an entry.
    """
    text, first, goes_on = "", 0, ""
    for number, raw in enumerate(lines, 1):
        line = raw.rstrip()
        if line.startswith("*") or not line.strip():
            continue
        first = first if goes_on else number
        line = line.lstrip() if goes_on != "-" else line
        goes_on = line[-1] if line[-1] in "+-" else ""
        text += line[:-1] if goes_on else line
        if not goes_on:
            yield first, text
            text = ""
    if text:
        raise RulesTableError(f"line {first}: the entry goes on, and there is no further line")


def _words(number: int, text: str) -> dict[str, str]:
    words: dict[str, str] = {}
    at = 0
    while at < len(text):
        found = _PAIR.match(text, at)
        if found is None:
            raise RulesTableError(f"line {number}, near {text[at : at + 20].strip()}: KEYWORD(VALUE) is expected")
        keyword, value = found[1].upper(), found[2]
        if keyword in words:
            raise RulesTableError(f"line {number}: {keyword} stands twice")
        if keyword not in (*_CONTROL, *_TEXTS, *_NUMBERS, *_ACTION_KEYWORDS):
            raise RulesTableError(f"line {number}: {keyword} is no keyword of a rules table")
        quoted = value.startswith("'")
        words[keyword] = (value[1:-1].replace("''", "'") if quoted else value).strip()
        at = found.end()
    return words


def _rule(number: int, words: dict[str, str]) -> Rule:
    if misplaced := [word for word in words if word in _CONTROL]:
        raise RulesTableError(f"line {number}: {misplaced[0]} belongs to the first entry, alone or with its like")
    action = words.get("ACTION", "").upper()
    if action not in _ACTIONS:
        raise RulesTableError(f"line {number}: ACTION is one of {', '.join(_ACTIONS)}")
    to_q_name = words.get("FWDQ", "")
    if (action == "FWD") != bool(to_q_name):
        raise RulesTableError(f"line {number}: ACTION(FWD) and FWDQ go together")
    if words.get("PUTAUT", "DEF").upper() != "DEF":
        raise RulesTableError(f"line {number}: PUTAUT is DEF here: messages are put with the rights of who runs this")
    header = words.get("HEADER", "YES").upper()
    if header not in ("YES", "NO"):
        raise RulesTableError(f"line {number}: HEADER is YES or NO")
    attempts = _number(number, "RETRY", words.get("RETRY", "1")) or 1
    tests = tuple(_test(number, word, value) for word, value in words.items() if word not in _ACTION_KEYWORDS)
    return Rule(number, tests, action, to_q_name, words.get("FWDQM", ""), header == "YES", attempts)


def _test(number: int, keyword: str, value: str) -> Callable[[MessageDescriptor, DeadLetterHeader], bool]:
    if value == "*":
        return lambda md, dlh: True
    if keyword in _TEXTS:
        parts = (re.escape(value)).replace(r"\*", ".*").replace(r"\?", ".")
        return partial(_is_like, _TEXTS[keyword], re.compile(parts, re.DOTALL))
    field, kinds = _NUMBERS[keyword]
    return partial(_is_one, field, _code(number, keyword, value, kinds))


def _is_like(field: Field, pattern: re.Pattern[str], md: MessageDescriptor, dlh: DeadLetterHeader) -> bool:
    return pattern.fullmatch(str(field(md, dlh)).rstrip()) is not None


def _is_one(field: Field, code: int, md: MessageDescriptor, dlh: DeadLetterHeader) -> bool:
    return field(md, dlh) == code


def _code(number: int, keyword: str, value: str, kinds: tuple[type[IntEnum], ...]) -> int:
    """Returns the number of a value or of its name. Raises RulesTableError."""
    if value.lstrip("-").isdecimal():
        return int(value)
    name = value.upper()
    for kind in kinds:
        # TM_ERROR is a reason and a feedback code: the prefix tells which.
        for member, code in kind.__members__.items():
            if name in (member, _PREFIXES[kind] + member):
                return int(code)
    raise RulesTableError(f"line {number}: {keyword}({value}): it is no number and no name that is known here")


def _number(number: int, keyword: str, value: str) -> int:
    if not value.isdecimal() or int(value) > MOST:
        raise RulesTableError(f"line {number}: {keyword}({value}): a number up to {MOST}" if number else keyword)
    return int(value)

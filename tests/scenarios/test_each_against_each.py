"""Every occasion, with every trigger type, against everything that may be missing: played by the real manager.

What is expected is said here once more, from the seed and not from the table of the code. Until the event the process
is missing, so nothing fires before; it is defined just before the event, which is no occasion.
"""

from __future__ import annotations

from functools import cache

import pytest

from tests.book import stage
from trigmon.simulate.player import play
from trigmon.simulate.scenario_files import read_scenarios
from trigmon.simulate.scenario_stores import STORES

TYPES = ("FIRST", "EVERY", "DEPTH", "NONE")
# What each occasion of the seed asks for; "2" stands for enough messages of sufficient priority.
ASKS = {
    "1": "2 4 5 6 7 8 9",
    "11": "2 4 5 6 7 8 9",
    "12": "2 4 6 7 8 9",
    "13": "2 4 5 6 7 9",
    "13a": "2 4 5 6 7 8 9",
    "13b": "2 4 6 7 8 9",
    "13c": "2 4 5 6 7 9",
}
# What is missing: how it is made so before the event.
MISSING = {
    "nothing": "",
    "2 priority": "",
    "2 fifo": "- mqsc: ALTER QLOCAL(Q) MSGDLVSQ(FIFO) DEFPRTY(3)",
    "2 number": "",
    "4": "- open: {queue: Q, for: [input_shared], handle: another}\n  as: reader",
    "5": "- mqsc: ALTER QLOCAL(Q) GET(DISABLED)",
    "6": "",
    "7 get": "- mqsc: ALTER QLOCAL(INITQ) GET(DISABLED)",
    "7 put": "- mqsc: ALTER QLOCAL(INITQ) PUT(DISABLED)",
    "7 usage": "- mqsc: ALTER QLOCAL(INITQ) USAGE(XMITQ)",
    "7 named": "- mqsc: ALTER QLOCAL(Q) INITQ(NOT.THERE)",
    "8": "",
    "9": "- mqsc: ALTER QLOCAL(Q) NOTRIGGER",
}
BEFORE = {
    "12": "- open: {queue: Q, for: [input_shared]}\n  as: srv",
    "13": "- mqsc: ALTER QLOCAL(Q) TRIGMPRI(6)",
    "13a": "- mqsc: ALTER QLOCAL(INITQ) PUT(DISABLED)",
    "13b": "- mqsc: ALTER QLOCAL(Q) GET(DISABLED)",
}
EVENTS = {
    "1": "- put: {queue: Q, data: m, priority: %(priority)s}",
    "11": "- put: {queue: Q, data: m, priority: %(priority)s}",
    "12": "- close: {queue: Q}\n  as: srv",
    "13": "- mqsc: ALTER QLOCAL(Q) TRIGMPRI(5)",
    "13a": "- mqsc: ALTER QLOCAL(INITQ) PUT(ENABLED)",
    "13b": "- mqsc: ALTER QLOCAL(Q) GET(ENABLED)",
    "13c": "- open: {queue: INITQ, for: [input_shared]}\n  as: mon",
}
# The event is just that this comes true.
CONTRADICTIONS = {("13a", "7 put"), ("13b", "5"), ("13c", "8")}
CASES = [
    (occasion, kind, missing)
    for occasion in ASKS
    for kind in TYPES
    for missing in MISSING
    if (occasion, missing) not in CONTRADICTIONS
]


def messages_before(occasion: str, kind: str, missing: str) -> int:
    """How many wait before the event: just enough for it, or one too few; a put brings one itself."""
    enough = {"FIRST": 1, "EVERY": 1, "DEPTH": 2, "NONE": 1}[kind]
    if occasion == "1":
        return enough - 1 - (missing == "2 number" and kind == "DEPTH")
    if missing == "2 number":
        return enough - 1 - (occasion == "11" and kind == "DEPTH")
    return enough if occasion == "11" else enough + 1


def fires(occasion: str, kind: str, missing: str) -> bool:
    """What the seed says."""
    if kind == "NONE" or (occasion == "12" and kind == "EVERY"):
        return False
    if missing == "2 number" and occasion in ("1", "11") and kind != "DEPTH":
        return True  # the put brings the one message that FIRST and EVERY want
    if missing == "4" and kind == "EVERY":
        return True
    return missing.split()[0] not in ASKS[occasion].split()


@cache
def scenario(occasion: str, kind: str, missing: str, ending: str = ""):
    priority = 4 if missing == "2 priority" else 9
    put = f"- put: {{queue: Q, data: m, priority: {priority}}}"
    steps = ["" if occasion == "13c" or missing == "8" else "- open: {queue: INITQ, for: [input_shared]}\n  as: mon"]
    steps += [MISSING["2 fifo"] if missing == "2 fifo" else ""]
    steps += [put] * messages_before(occasion, kind, missing)
    steps += [BEFORE.get(occasion, ""), "" if missing == "2 fifo" else MISSING[missing]]
    if missing != "6":
        steps.append("- mqsc: DEFINE PROCESS(P) APPLTYPE(UNIX) APPLICID('/bin/true')")
    quiet = [step + "\n  triggers: []" for step in steps if step]
    said = "[Q]" if fires(occasion, kind, missing) else "[]"
    event = EVENTS[occasion] % {"priority": priority}
    if ending:
        event = event.replace("}", ", options: [syncpoint]}") + f"\n  triggers: []\n- {ending}: {{}}"
        said = "[]" if ending in ("backout", "kill") and kind == "EVERY" else said
    off = missing == "9" or (kind == "DEPTH" and fires(occasion, kind, missing))
    after = f"- check: {{queue: Q, TRIGGER: {'NOTRIGGER' if off else 'TRIGGER'}}}"
    text = f"""
scenario: {occasion} {kind} without {missing}
setup: |
  DEFINE QLOCAL(INITQ)
  DEFINE QLOCAL(Q) TRIGGER TRIGTYPE({kind}) TRIGDPTH(2) TRIGMPRI(5) INITQ(INITQ) PROCESS(P)
steps:
""" + "\n".join([*quiet, f"{event}\n  triggers: {said}", after])
    return read_scenarios(text, "generated")[0], text


def failures(made, store):
    played, text = made
    result = play(played, stage(("QM1",), store))
    return [f"{step.failure}\n{text}" for step in result.steps if step.failure]


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("occasion", ASKS)
def test_an_occasion_fires_exactly_when_nothing_it_asks_for_is_missing(occasion, store):
    made = [scenario(*case) for case in CASES if case[0] == occasion]
    assert [failure for each in made for failure in failures(each, store)] == []


@pytest.mark.parametrize("ending", ["commit", "backout", "disconnect", "kill"])
@pytest.mark.parametrize("occasion", ["1", "11"])
def test_in_a_unit_of_work_it_fires_at_the_end(occasion, ending):
    made = [scenario(*case, ending) for case in CASES if case[0] == occasion]
    assert [failure for each in made for failure in failures(each, "memory")] == []


def test_both_answers_are_given_for_every_occasion_and_type():
    for occasion in ASKS:
        for kind in TYPES:
            answers = {fires(*case) for case in CASES if case[:2] == (occasion, kind)}
            never = kind == "NONE" or (occasion, kind) == ("12", "EVERY")
            assert answers == ({False} if never else {True, False})

"""The checker of the kill test finds each thing that must not happen."""

import itertools

import pytest

from tests.server.history import BACKED_OUT, COMMITTED, UNKNOWN, problems


def story(*events):
    """Events at ascending moments."""
    moment = itertools.count()
    return [{"at": next(moment), "who": "c", "event": name} | what for name, what in events]


def put(unit, *bodies, outcome=COMMITTED):
    return [("put", {"unit": unit, "bodies": list(bodies)}), ("put-end", {"unit": unit, "outcome": outcome})]


def get(unit, *bodies, outcome=COMMITTED, count=0):
    return [
        *(("seen", {"body": body, "count": count}) for body in bodies),
        ("get", {"unit": unit, "bodies": list(bodies)}),
        ("get-end", {"unit": unit, "outcome": outcome}),
    ]


def test_a_history_without_fault_has_no_problem():
    events = story(
        *put("1", "p#0", "p#1"),
        *put("2", "p#2", outcome=UNKNOWN),
        *put("3", "p#3", "p#4", outcome=BACKED_OUT),
        *get("a", "p#0", outcome=BACKED_OUT),
        *get("b", "p#0", count=1),
    )
    assert problems(events, ["p#1", "p#2"]) == []


@pytest.mark.parametrize(
    ("events", "left", "what"),
    [
        (put("1", "p#0"), [], "lost"),
        (put("1", "p#0", "p#1"), ["p#0"], "lost"),
        ([*put("1", "p#0"), *get("a", "p#0")], ["p#0"], "double"),
        ([*put("1", "p#0"), *get("a", "p#0"), *get("b", "p#0", count=1)], [], "double"),
        ([], ["p#0"], "phantom"),
        (put("1", "p#0", "p#1", outcome=BACKED_OUT), ["p#1"], "phantom"),
        ([*put("1", "p#0", outcome=UNKNOWN), ("seen", {"body": "p#0", "count": 0})], [], "aborted read"),
        ([*put("1", "p#0", "p#1", outcome=BACKED_OUT), ("seen", {"body": "p#1", "count": 0})], [], "aborted read"),
        ([("put", {"unit": "1", "bodies": ["p#0", "p#1"]})], [], "no outcome"),
        (put("1", "p#0", "p#1", outcome=UNKNOWN), [], "no outcome"),
        ([*put("1", "p#0"), *get("a", "p#0", outcome="open")], ["p#0"], "no outcome"),
        ([*put("1", "p#0", "p#1"), *get("a", "p#1"), *get("b", "p#0")], [], "out of order"),
        ([*put("1", "p#0"), *get("a", "p#0", outcome=BACKED_OUT), *get("b", "p#0")], [], "backout count"),
    ],
)
def test_the_checker_finds(events, left, what):
    assert any(problem.startswith(what) for problem in problems(story(*events), left))

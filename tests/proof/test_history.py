"""The rules find each thing that must not happen, and nothing where nothing is wrong."""

import itertools

import pytest

from tests.proof.history import BACKED_OUT, COMMITTED, UNKNOWN, Left
from tests.proof.rules import problems


def story(*events):
    """Events at ascending moments, a second apart."""
    moment = itertools.count()
    return [{"who": "c", "event": name, "at": (at := next(moment)), "ms": 1000 * at} | what for name, what in events]


def put(work, *bodies, outcome=COMMITTED, alone=False, priority=4, **what):
    return [
        *(
            ("put", {"work": work, "body": body, "queue": "Q", "priority": priority} | what | {"who": "p"})
            for body in bodies
        ),
        ("heard", {"work": work}),
        ("ends", {"work": work, "alone": alone}),
        ("ended", {"work": work, "outcome": outcome}),
    ]


def get(work, *bodies, outcome=COMMITTED, count=0, alone=False, who="c"):
    return [
        ("asks", {"work": work, "queue": "Q", "n": 1}),
        *(("seen", {"work": work, "queue": "Q", "body": body, "count": count, "who": who}) for body in bodies),
        ("heard", {"work": work}),
        ("ends", {"work": work, "alone": alone}),
        ("ended", {"work": work, "outcome": outcome}),
    ]


def left(*bodies, values=None, ms=10**9, reports=()):
    whole = [body if isinstance(body, tuple) else (body, 4, 0) for body in bodies]
    return Left([("Q", body, priority, count) for body, priority, count in whole], values or {}, ms, list(reports))


POWER, KILL = ("crash", {"how": "power"}), ("crash", {"how": "kill"})
UNHEARD = [("asks", {"work": "g", "queue": "Q", "n": 1}), ("ends", {"work": "g", "alone": True})]
UNHEARD_END = ("ended", {"work": "g", "outcome": UNKNOWN})
WRITE = [("write", {"work": "w", "key": "K", "value": "new"}), ("ends", {"work": "w", "alone": True})]
WRITTEN = ("ended", {"work": "w", "outcome": COMMITTED})
PERHAPS_WRITTEN = ("ended", {"work": "w", "outcome": UNKNOWN})


@pytest.mark.parametrize(
    ("events", "at_the_end"),
    [
        (
            [
                *put("1", "p#0", "p#1"),
                *put("2", "p#2", outcome=UNKNOWN, alone=True),
                *put("3", "p#3", "p#4", outcome=BACKED_OUT),
                *get("a", "p#0", outcome=BACKED_OUT),
                *get("b", "p#0", count=1),
            ],
            left("p#1", "p#2"),
        ),
        ([*put("1", "p#0"), *UNHEARD, UNHEARD_END], left()),
        ([*put("1", "p#0", "p#1", outcome=UNKNOWN, alone=True), *UNHEARD, UNHEARD_END], left("p#1")),
        ([*put("1", "p#0", kind="volatile"), KILL], left()),
        ([*put("1", "p#0", expiry_ms=5000)], left(reports=["p#0"])),
        ([*put("1", "p#0"), *get("a", "p#0", outcome=BACKED_OUT)], left(("p#0", 4, 1))),
        (
            [*put("1", "p#0"), *get("a", "p#0", outcome=BACKED_OUT)[:-1], POWER, *get("a", outcome=BACKED_OUT)[-1:]],
            left("p#0"),
        ),
        (
            [
                *put("1", "p#0", "p#1"),
                *get("a", "p#1", outcome=BACKED_OUT, who="d"),
                *get("b", "p#1", count=1),
                *get("c", "p#0"),
            ],
            left(),
        ),
        ([*WRITE, WRITTEN], left(values={"K": "new"})),
        ([*WRITE, PERHAPS_WRITTEN], left()),
        ([*put("1", "p#0"), ("told", {"queue": "Q"})], left("p#0")),
    ],
)
def test_a_history_without_fault_has_no_problem(events, at_the_end):
    assert problems(story(*events), at_the_end) == []


@pytest.mark.parametrize(
    ("events", "at_the_end", "what"),
    [
        (put("1", "p#0"), left(), "lost"),
        (put("1", "p#0", "p#1"), left("p#0"), "lost"),
        ([*put("1", "p#0", "p#1"), *UNHEARD, UNHEARD_END], left(), "lost"),
        (put("1", "p#0", kind="volatile"), left(), "lost"),
        (put("1", "p#0", expiry_ms=5000), left(), "lost"),
        (put("1", "p#0", expiry_ms=5000), left("p#0", reports=["p#0"]), "double"),
        (put("1", "p#0", expiry_ms=5000), left(reports=["p#0"], ms=2000), "expired"),
        ([*put("1", "p#0"), *get("a", "p#0")], left("p#0"), "double"),
        ([*put("1", "p#0"), *get("a", "p#0"), *get("b", "p#0", count=1)], left(), "double"),
        ([], left("p#0"), "phantom"),
        (put("1", "p#0", "p#1", outcome=BACKED_OUT), left("p#1"), "phantom"),
        ([*put("1", "p#0"), ("refused", {"work": "1", "body": "p#0"})], left("p#0"), "phantom"),
        ([*put("1", "p#0", outcome=UNKNOWN, alone=True), *get("", "p#0")[1:2]], left(), "aborted read"),
        ([*put("1", "p#0", "p#1", outcome=BACKED_OUT), *get("", "p#1")[1:2]], left(), "aborted read"),
        (put("1", "p#0", "p#1", outcome=UNKNOWN, alone=True), left("p#1"), "torn"),
        (
            [*put("1", *(f"p#{n}" for n in range(3)), outcome=UNKNOWN, alone=True), *UNHEARD, UNHEARD_END],
            left("p#2"),
            "torn",
        ),
        (put("1", "p#0", "p#1")[:-1], left(), "no outcome"),
        (put("1", "p#0", "p#1", outcome=UNKNOWN), left(), "no outcome"),
        ([*put("1", "p#0"), *get("a", "p#0", outcome="open")], left("p#0"), "no outcome"),
        ([*put("1", "p#0", "p#1"), *get("a", "p#1"), *get("b", "p#0")], left(), "out of order"),
        (put("1", "p#0", "p#1"), left("p#1", "p#0"), "out of order"),
        (put("1", "p#0", "p#1"), left(("p#0", 4, 0), ("p#1", 5, 0)), "out of order"),
        ([*put("1", "p#0"), *get("a", "p#0", outcome=BACKED_OUT), *get("b", "p#0")], left(), "backout count"),
        ([*put("1", "p#0"), *get("a", "p#0", outcome=BACKED_OUT)], left("p#0"), "backout count"),
        ([*put("1", "p#0"), *get("a", "p#0", count=1)], left(), "backout count"),
        (put("1", "p#0", expiry_ms=5000), left("p#0"), "expired"),
        ([*WRITE, WRITTEN], left(), "value"),
        ([*WRITE[:1], ("ended", {"work": "w", "outcome": BACKED_OUT})], left(values={"K": "new"}), "value"),
        ([*put("1", "p#0"), ("told", {"queue": "Q"}), ("told", {"queue": "Q"})], left("p#0"), "told"),
    ],
)
def test_the_rules_find(events, at_the_end, what):
    assert what in {problem.split(":")[0] for problem in problems(story(*events), at_the_end)}

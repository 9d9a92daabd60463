"""Patterns of file names, as watches have them."""

from __future__ import annotations


def overlap(one: str, other: str) -> bool:
    """Returns whether a name may match both patterns. A set in brackets counts as any character."""
    reached = {(0, 0)}
    one, other = _without_sets(one), _without_sets(other)
    for _ in range(len(one) + len(other)):
        reached |= {place for at in reached for place in _next(one, other, *at)}
    return (len(one), len(other)) in reached


def _next(one: str, other: str, i: int, j: int) -> set[tuple[int, int]]:
    """Returns the places in both patterns after a character more, or after a star that matches nothing more."""
    first, second = one[i : i + 1], other[j : j + 1]
    places = set()
    if first == "*":
        places |= {(i + 1, j), (i, j + 1)} if second else {(i + 1, j)}
    if second == "*":
        places |= {(i, j + 1), (i + 1, j)} if first else {(i, j + 1)}
    if first and second and "*" not in (first, second) and (first == second or "?" in (first, second)):
        places.add((i + 1, j + 1))
    return places


def _without_sets(pattern: str) -> str:
    found, rest = "", pattern
    while rest:
        end = rest.find("]", 2) if rest.startswith("[") else -1
        found, rest = (found + "?", rest[end + 1 :]) if end > 0 else (found + rest[0], rest[1:])
    return found

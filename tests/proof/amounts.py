"""How much of each proof is run: on every change, and where somebody wants to be sure."""

from __future__ import annotations

from typing import NamedTuple


class Amounts(NamedTuple):
    """``stride``: of the positions at which the disk can fail every so many-th. ``seeds`` are the simulation's.

    ``faults`` strike the members of a group.
    """

    images: int
    stride: int
    error_seeds: range
    kills: int
    seeds: range
    faults: int


NORMAL = Amounts(images=2_000, stride=11, error_seeds=range(1, 2), kills=20, seeds=range(20), faults=4)
SLOW = Amounts(images=20_000, stride=1, error_seeds=range(2, 5), kills=200, seeds=range(1000, 1800), faults=100)

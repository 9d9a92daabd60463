"""All proofs of what was promised, and their counts: ``python -m tests.proof [--slow]``; 1 when a promise was broken.

``--seed N`` plays one seed of the simulation again and shows its last events.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.daemons import queue_managers
from tests.postgres import Server
from tests.proof.amounts import NORMAL, SLOW, Amounts
from tests.proof.chaos import strike
from tests.proof.errors import fail_everywhere
from tests.proof.found import Found
from tests.proof.kills import kill_again_and_again
from tests.proof.power_cuts import cut_power
from tests.proof.simulation import Simulation, simulate

LAST = 50
MOST_SHOWN = 20


def main() -> int:
    """What was asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.proof", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--slow", action="store_true", help="as much as in the slow tests")
    parser.add_argument("--seed", type=int, help="one seed of the simulation")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        if given.seed is not None:
            return replay(Path(home), given.seed)
        return all_of_it(Path(home), SLOW if given.slow else NORMAL)


def all_of_it(home: Path, amounts: Amounts) -> int:
    """Every proof, each with a line of counts."""
    proofs: list[Callable[[], Found]] = [
        lambda: cut_power(home, 1, amounts.images),
        *(lambda seed=seed: fail_everywhere(home, seed, amounts.stride) for seed in amounts.error_seeds),
        lambda: simulate(home, amounts.seeds),
        lambda: _kill(amounts.kills),
        lambda: _strike(amounts.faults),
    ]
    violations = 0
    for proof in proofs:
        began = time.monotonic()
        found = proof()
        print(f"{found} ({time.monotonic() - began:.0f} s)", flush=True)
        print(*found.violations[:MOST_SHOWN], sep="\n", end="\n" if found.violations else "")
        violations += len(found.violations)
    print(f"{violations} violations in all")
    return 1 if violations else 0


def _kill(kills: int) -> Found:
    with queue_managers(tempfile.mkdtemp) as make:
        return kill_again_and_again(make(), kills, seed=2026)


def _strike(faults: int) -> Found:
    server = Server()
    try:
        with queue_managers(tempfile.mkdtemp) as make:
            return strike(make, server, faults, seed=2026)
    finally:
        server.end()


def replay(home: Path, seed: int) -> int:
    """One seed again, with its last events."""
    simulation = Simulation(home, seed)
    said = simulation.run()
    print(*simulation.events[-LAST:], sep="\n")
    print(f"seed {seed}: {simulation.works} units of work, {dict(simulation.happened)}")
    print(*said, f"{len(said)} violations", sep="\n")
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())

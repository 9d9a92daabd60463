"""A member whose group promises less: ``python -m tests.proof.mutated MUTANT ...`` is ``trigmon ...``."""

from __future__ import annotations

import sys
from collections.abc import Callable

from trigmon.cli.main import main
from trigmon.store.postgres import lease
from trigmon.store.postgres.write_batch import Writes

_PASSES = "SELECT 1 WHERE (?::text, ?::int8) IS NOT NULL"


def without_epochs() -> None:
    """A member that was recovered passes the fence all the same."""
    lease.CHECK = lease.FENCE = _PASSES


def without_counts() -> None:
    """A commit changes what it finds, and nobody asks how much that was."""
    right = Writes.add

    def add(self: Writes, statement: str, values: object, expected: int | None = None) -> None:
        right(self, statement, values, None)  # type: ignore[arg-type]

    Writes.add = add  # type: ignore[method-assign,assignment]


def without_both() -> None:
    """Neither is asked."""
    without_epochs()
    without_counts()


MUTANTS: dict[str, Callable[[], None]] = {
    mutant.__name__: mutant for mutant in (without_epochs, without_counts, without_both)
}

if __name__ == "__main__":
    MUTANTS[sys.argv.pop(1)]()
    main()

"""What a proof looked at, and what was wrong."""

from __future__ import annotations


class Found:
    """``count`` things of one kind looked at, and the sentences of those that were impossible, each with its place."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.count = 0
        self.violations: list[str] = []

    def add(self, problems: list[str], where: str) -> None:
        """One more, and what was wrong with it."""
        self.count += 1
        self.violations += [f"{where}: {problem}" for problem in problems]

    def __str__(self) -> str:
        return f"{self.count} {self.what}, {len(self.violations)} violations"

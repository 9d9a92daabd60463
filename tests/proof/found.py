"""What a proof looked at, and what was wrong."""

from __future__ import annotations

from collections import Counter


class Found:
    """``count`` things of one kind looked at, and the sentences of those that were impossible, each with its place."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.count = 0
        self.violations: list[str] = []
        self.more: Counter[str] = Counter()

    def add(self, problems: list[str], where: str, count: int = 1) -> None:
        """One more (or ``count``), and what was wrong with it."""
        self.count += count
        self.violations += [f"{where}: {problem}" for problem in problems]

    def __str__(self) -> str:
        more = "".join(f", {count} {what}" for what, count in sorted(self.more.items()))
        return f"{self.count} {self.what}{more}: {len(self.violations)} violations"

"""Reports of a play: a line a scenario for people, an object a line for programs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable

from trigmon.simulate.player import Played, Result

Echo = Callable[[str], None]


class Report:
    """Tells each result as it comes, and the summary at the end: ``N passed, N failed``, counting scenarios.

    With ``as_json`` standard output holds only objects, and the summary goes to standard error.
    """

    def __init__(self, as_json: bool, echo_out: Echo, echo_err: Echo) -> None:
        self._as_json = as_json
        self._out = echo_out
        self._err = echo_err
        self._counted: Counter[bool] = Counter()

    def tell(self, result: Result) -> None:
        """Reports one scenario."""
        self._counted[result.passed] += 1
        if self._as_json:
            self._out(json.dumps(as_object(result), ensure_ascii=False))
            return
        self._out(f"{'passed' if result.passed else 'FAILED'}  {result.scenario.title}")
        for step in result.steps:
            if step.failure is not None:
                self._out(f"        {result.scenario.file}:{step.line}: {_which(step)}: {step.failure}")

    def end(self) -> bool:
        """Returns the summary; whether every scenario passed."""
        summary = f"{self._counted[True]} passed, {self._counted[False]} failed"
        (self._err if self._as_json else self._out)(summary)
        return not self._counted[False]


def as_object(result: Result) -> dict[str, object]:
    """Returns a result as JSON shows it."""
    return {
        "scenario": result.scenario.title,
        "file": result.scenario.file,
        "passed": result.passed,
        "steps": [
            {
                "step": step.number,
                "verb": step.verb,
                "passed": step.failure is None,
                "triggers": [trigger.plain() for trigger in step.triggers],
                "failure": step.failure,
            }
            for step in result.steps
        ],
    }


def _which(step: Played) -> str:
    return f"step {step.number}, {step.verb}" if step.number else "setup"

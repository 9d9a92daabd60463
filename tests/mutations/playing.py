"""Plays the scenario book on the memory store, and says which scenario notices a fault first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.book import BOOK
from tests.mutations.fault import Fault
from trigmon.qmgr.manager_events import CallFailed, Event
from trigmon.simulate import in_process
from trigmon.simulate.in_process import InProcess
from trigmon.simulate.player import play
from trigmon.simulate.scenario import Scenario


class FaultError(Exception):
    """The fault makes the queue manager stumble instead of deciding wrongly: it proves nothing."""


# The conditions' pages first: who is told of a fault looks there.
SCENARIOS = [s for _, s in sorted(BOOK, key=lambda entry: (not entry[0].startswith("condition"), entry[0]))]


def failing(fault: Fault | None) -> Iterator[Scenario]:
    """The scenarios that do not hold with the fault planted, in the book's order. Raises FaultError."""
    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(in_process._Listener, "tell", _stumbled)
        if fault is not None:
            fault.plant(patches)
        for scenario in SCENARIOS:
            try:
                result = play(scenario, InProcess(scenario.q_mgrs, "memory"))
            except Exception as error:
                raise FaultError(f"{fault and fault.name}: {title_of(scenario)}: {error!r}") from error
            if not result.passed:
                yield scenario


def who_notices(fault: Fault) -> str | None:
    """The first scenario that does not hold with the fault planted, None when all hold."""
    return next((title_of(scenario) for scenario in failing(fault)), None)


def title_of(scenario: Scenario) -> str:
    return f"{Path(scenario.file).stem}: {scenario.title}"


_tell = in_process._Listener.tell


def _stumbled(self: in_process._Listener, event: Event) -> None:
    if isinstance(event, CallFailed):
        raise event.error
    _tell(self, event)

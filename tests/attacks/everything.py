"""The whole table, by importing all of its parts, and how it is played."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.attacks import on_calls, on_files, on_resources, on_runs, on_triggers
from tests.attacks.stage import Stage
from tests.attacks.table import ATTACKS, ROLES, Attack
from tests.attacks.users import BROKEN, DID

PARTS = (on_files, on_calls, on_runs, on_triggers, on_resources)


@dataclass
class Verdict:
    """How an attack went: what its process said, and whether it got what it wanted."""

    how: str
    said: Any
    succeeded: Any = None

    @property
    def is_fair(self) -> bool:
        """Whether it was tried at all."""
        return self.how != BROKEN


def play(stage: Stage) -> dict[str, Verdict]:
    """Plays all of it: the verdicts by the attacks' ids."""
    attempts = {attack.id: attack.attempt for attack in ATTACKS}
    others = {"good client": on_resources.good_client, "trusting client": on_resources.trusting_client}
    stage.cast(attempts | others | {"rest": on_resources.rest})
    on_triggers.prepare(stage)
    verdicts: dict[str, Verdict] = {}
    given = {}
    for attack in sorted(ATTACKS, key=lambda attack: attack.restarts):
        given[attack.id] = attack.prepare(stage)
        verdicts[attack.id] = _attempted(stage, attack, given[attack.id])
    late = [attack for attack in ATTACKS if attack.late]
    stage.retry_dead_letters()
    stage.kill_monitor()
    stage.start_monitor()
    stage.settle()
    for attack in late:
        _look(stage, attack, verdicts[attack.id], given[attack.id])
    return verdicts


def _attempted(stage: Stage, attack: Attack, given: Any) -> Verdict:
    verdict = Verdict(*stage.actors[attack.who].ask(attack.id, given))
    if not attack.late:
        _look(stage, attack, verdict, given)
    return verdict


def _look(stage: Stage, attack: Attack, verdict: Verdict, given: Any) -> None:
    verdict.succeeded = attack.succeeded(stage, verdict.said if verdict.how == DID else None, given)


def counts() -> dict[str, int]:
    """How many attacks there are by role."""
    return {role: sum(attack.who == role for attack in ATTACKS) for role in ROLES}

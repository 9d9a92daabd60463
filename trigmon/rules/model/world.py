"""Every object and handle of a queue manager as one value, for the verbs that list."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from trigmon.rules.model.facts import World

if TYPE_CHECKING:
    from trigmon.rules.model.state import Standing


def world_of(standing: Standing) -> World:
    """Returns every object and handle, for the verbs that list."""
    held: Counter[str] = Counter()
    for (initiation_q, _, _), count in standing.held.items():
        held[initiation_q] += count
    return World(
        tuple(standing.queues.values()),
        tuple(standing.aliases.values()),
        tuple(standing.processes.values()),
        tuple(standing.handles.values()),
        tuple(standing.connections.values()),
        tuple(standing.units.values()),
        tuple(standing.remotes.values()),
        tuple(standing.models.values()),
        tuple(standing.reservations.values()),
        dict(held),
        frozenset(q_name for (_, _, q_name), count in standing.held.items() if count),
        tuple(standing.schedules.values()),
        tuple(standing.watches.values()),
        tuple(standing.authority.values()),
        tuple(standing.namelists.values()),
    )

"""Initiation queues of queue managers elsewhere as they are: what the monitors report that serve them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import asdict

from trigmon.rules.attention import Attention
from trigmon.rules.model.manager_state import ManagerState


def bridge_rows(manager: ManagerState) -> list[dict[str, Any]]:
    """Returns how each initiation queue elsewhere is, each with its ``state``: served or hindered, and its monitor."""
    rows = [
        asdict(each) | {"state": "hindered" if each.problem else "served", "monitor": monitor}
        for monitor, bridges in manager.reports.bridges().items()
        for each in bridges
    ]
    return sorted(rows, key=lambda row: (row["bridge"], row["initiation_q"], row["monitor"]))


def attention_of_bridges(manager: ManagerState) -> Iterator[Attention]:
    """Yields initiation queues elsewhere that are not served: no trigger message of theirs starts a program."""
    for row in bridge_rows(manager):
        if row["problem"]:
            remedy = f"trigmon bridge check {row['bridge']}; it goes on by itself when that has passed"
            yield Attention("bridge", row["initiation_q"], row["problem"], remedy, row["since_ms"], what="bridge")

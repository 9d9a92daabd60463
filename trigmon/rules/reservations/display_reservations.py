"""Shows reservations: the call Reservations, and the rows of DISPLAY and ``explain``."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

from trigmon.mq.calls import Reservations
from trigmon.mq.names import matches
from trigmon.mq.replies import Listing
from trigmon.rules.call_rights import may_see_queue
from trigmon.rules.model.decision import Decision, Ids
from trigmon.rules.model.facts import WorldFacts
from trigmon.rules.model.reservation import Reservation
from trigmon.rules.model.stored_messages import Found

MOST_ROWS = 256
"""So many reservations are shown at once at most: each may list a thousand stretches."""


def decide_reservations(call: Reservations, facts: WorldFacts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Lists those of which anything is left, by number, a page of them. ``own``: those of the user who asks."""
    limit = max(1, min(call.limit, MOST_ROWS))
    behind = sorted((r for r in facts.world.reservations if r.number > call.after), key=lambda r: r.number)
    seen = (r for r in behind if r.left and matches(r.q_name, call.q_name) and may_see_queue(r.q_name, facts))
    of = list(islice(seen, limit + 1))
    page = of[:limit]
    owned = [{**row, "own": r.user in (None, facts.connection.user)} for r, row in zip(page, rows(page), strict=True)]
    return Decision(Listing(rows=owned, more=len(of) > limit))


def rows(reservations: Sequence[Reservation]) -> list[dict[str, Any]]:
    """Returns reservations as they are shown, the first MOST_ROWS, with a sentence for a person."""
    shown = islice((r for r in reservations if r.left), MOST_ROWS)
    return [
        {
            "reservation": r.number,
            "q_name": r.q_name,
            "consumer": r.consumer,
            "count": r.count,
            "left": r.left,
            "left_ordinals": [list(stretch) for stretch in r.stretches],
            "size": r.size,
            "token": r.token,
            "complete": r.is_sealed,
            "whole_groups": r.whole_groups,
            "offers": r.offers,
            "since_ms": r.made_ms,
            "by": r.by,
            "user": r.user or "",
            "held": bool(r.holder),
            "readers": len(r.readers),
            "summary": _sentence(r),
        }
        for r in shown
    ]


def _sentence(reservation: Reservation) -> str:
    if reservation.behind:
        who = f"held by {reservation.by}" if reservation.holder else f"read by {len(reservation.readers)}"
        return f"{reservation.left} reserved for {reservation.consumer}, {who}, which do not count"
    return f"{reservation.left} reserved for {reservation.consumer} alone, held by nobody, which count"

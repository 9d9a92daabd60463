"""Listings that come a page at a time, as one listing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from msgspec.structs import replace

from trigmon.mq.calls import (
    Call,
    Display,
    DisplayConnections,
    DisplayHandles,
    QueueStatus,
    Reservations,
    ResetQueueStatistics,
)
from trigmon.mq.replies import Listing, Reply

Paged = Display | QueueStatus | ResetQueueStatistics | DisplayHandles | DisplayConnections | Reservations
_PAGED_BY: dict[type[Paged], str] = {
    Display: "name",
    QueueStatus: "name",
    ResetQueueStatistics: "name",
    DisplayHandles: "handle",
    DisplayConnections: "connection",
    Reservations: "reservation",
}
"""By call the value of a page's last row behind which the next page begins."""


def all_rows(ask: Callable[[Call], Reply], call: Paged) -> Iterator[dict[str, Any]]:
    """Yields every row that a call lists, page after page. Raises what ``ask`` raises."""
    for page in pages(ask, call):
        yield from page.rows


def pages(ask: Callable[[Call], Reply], call: Paged) -> Iterator[Listing]:
    """Yields the pages that a call lists, each by a call of its own. Raises what ``ask`` raises."""
    while True:
        listing = ask(call)
        assert isinstance(listing, Listing)
        yield listing
        if not listing.more or not listing.rows:
            return
        call = replace(call, after=listing.rows[-1][_PAGED_BY[type(call)]])

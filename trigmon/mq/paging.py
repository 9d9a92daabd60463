"""Listings that come a page at a time, as one listing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from msgspec.structs import replace

from trigmon.mq.calls import Call, Display
from trigmon.mq.replies import Listing, Reply


def all_rows(ask: Callable[[Call], Reply], call: Display) -> Iterator[dict[str, Any]]:
    """Yields every row of a DISPLAY, page after page. Raises what ``ask`` raises."""
    while True:
        listing = ask(call)
        assert isinstance(listing, Listing)
        yield from listing.rows
        if not listing.more or not listing.rows:
            return
        call = replace(call, after=listing.rows[-1]["name"])

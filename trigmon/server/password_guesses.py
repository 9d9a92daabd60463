"""Wrong passwords by address: how long the next answer waits, and the warnings for an operator.

One password of an address is looked at at a time, and behind each wrong one the next waits longer. Guesses from one
address do not hold up a user at another one.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections import OrderedDict
from typing import NamedTuple

FREE = 3
"""Wrong passwords without a wait: a person mistypes."""
LONGEST_S = 8.0
"""A client waits 10 s for its welcome by default."""
FORGOTTEN_S = 3600.0
MOST_ADDRESSES = 10_000
WARN_FROM = 10
"""From so many wrong passwords of an address within an hour on the status says so."""


class _Address(NamedTuple):
    """What was wrong of late: how many, for which user last, and since and until when on the loop's clock."""

    times: int
    user: str
    last: float


class Guesses:
    """The wrong passwords of the last hour. ``now`` is on the loop's clock."""

    def __init__(self) -> None:
        self._wrong: OrderedDict[str, _Address] = OrderedDict()
        self._locks: dict[str, asyncio.Lock] = {}

    def turn(self, address: str) -> asyncio.Lock:
        """Returns the lock under which a password from this address is looked at."""
        place = network(address)
        if len(self._locks) > MOST_ADDRESSES:
            self._locks = {key: lock for key, lock in self._locks.items() if lock.locked()}
        return self._locks.setdefault(place, asyncio.Lock())

    def wait_s(self, address: str, now: float) -> float:
        """Returns how long the next password of this address waits: 0.5 s, and twice as long behind each wrong one."""
        wrong = self._wrong.get(network(address))
        if wrong is None or now - wrong.last > FORGOTTEN_S or wrong.times < FREE:
            return 0.0
        return float(min(LONGEST_S, 0.5 * 2.0 ** min(wrong.times - FREE, 10)))

    def was_wrong(self, address: str, user: str, now: float) -> int:
        """Notes a wrong password; returns how many there were from this address within the hour."""
        place = network(address)
        before = self._wrong.pop(place, None)
        count = 1 if before is None or now - before.last > FORGOTTEN_S else before.times + 1
        self._wrong[place] = _Address(count, user, now)
        if len(self._wrong) > MOST_ADDRESSES:
            self._wrong.popitem(last=False)
        return count

    def was_right(self, address: str) -> None:
        """Forgets the wrong passwords of an address."""
        self._wrong.pop(network(address), None)

    def warnings(self, now: float) -> list[str]:
        """Returns a sentence for each address from which passwords are guessed."""
        return [
            f"{wrong.times} wrong passwords from {place} within an hour, the last one for user {wrong.user}"
            for place, wrong in self._wrong.items()
            if wrong.times >= WARN_FROM and now - wrong.last <= FORGOTTEN_S
        ]


def network(address: str) -> str:
    """Returns what counts as one address: that of IPv4, and of IPv6 its first 64 bits, which one customer has."""
    found = ipaddress.ip_address(address)
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        return str(ipaddress.ip_network((found, 64), strict=False))
    return str(found)

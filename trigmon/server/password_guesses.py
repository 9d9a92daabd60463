"""Wrong passwords by address: how long the next answer waits, and the warnings for an operator.

One password of an address is looked at at a time, and behind each wrong one the next waits longer. Guesses from one
address do not hold up a user at another one.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections import Counter, OrderedDict

FREE = 3
"""Wrong passwords without a wait: a person mistypes."""
LONGEST_S = 8.0
"""A client waits 10 s for its welcome by default."""
FORGOTTEN_S = 3600.0
MOST_ADDRESSES = 10_000
MOST_USERS = 100
"""So many users of an address are counted each by itself."""
WARN_FROM = 10
"""From so many wrong passwords of an address within an hour on the status says so."""


class _Address:
    """What was wrong of late: how many, of which users, for which user last and when on the loop's clock.

    ``known`` are users who have come from this address.
    """

    def __init__(self) -> None:
        self.times = 0
        self.of: Counter[str] = Counter()
        self.user = ""
        self.last = 0.0
        self.known: set[str] = set()

    def wrong(self, user: str) -> int:
        """Returns how many wrong passwords count against this user: of one who has come from here only the own ones."""
        return self.of[user] if user in self.known else self.times


class Guesses:
    """The wrong passwords of the last hour. ``now`` is on the loop's clock.

    A right password forgets that user's wrong ones alone, so nobody guesses on behind a password of one's own. Who has
    come from an address waits there for nobody else's guesses.
    """

    def __init__(self) -> None:
        self._addresses: OrderedDict[str, _Address] = OrderedDict()
        self._locks: dict[tuple[str, str], asyncio.Lock] = {}

    def turn(self, address: str, user: str) -> asyncio.Lock:
        """Returns the lock under which this user's password from this address is looked at."""
        place = network(address)
        found = self._addresses.get(place)
        key = place, user if found is not None and user in found.known else ""
        if len(self._locks) > MOST_ADDRESSES:
            self._locks = {key: lock for key, lock in self._locks.items() if lock.locked()}
        return self._locks.setdefault(key, asyncio.Lock())

    def wait_s(self, address: str, user: str, now: float) -> float:
        """Returns how long the next password waits: 0.5 s behind the third wrong one, and twice as long each time."""
        found = self._addresses.get(network(address))
        if found is None or now - found.last > FORGOTTEN_S or (times := found.wrong(user)) < FREE:
            return 0.0
        return float(min(LONGEST_S, 0.5 * 2.0 ** min(times - FREE, 10)))

    def was_wrong(self, address: str, user: str, now: float) -> int:
        """Notes a wrong password; returns how many there were from this address within the hour."""
        found = self._at(network(address))
        if now - found.last > FORGOTTEN_S:
            found.times = 0
            found.of.clear()
        found.times += 1
        if user in found.of or len(found.of) < MOST_USERS:
            found.of[user] += 1
        found.user, found.last = user, now
        return found.times

    def was_right(self, address: str, user: str) -> None:
        """Forgets the wrong passwords of this user from this address."""
        found = self._at(network(address))
        found.times -= found.of.pop(user, 0)
        if len(found.known) < MOST_USERS:
            found.known.add(user)

    def _at(self, place: str) -> _Address:
        """Returns what is known of an address, as the one that is forgotten last."""
        found = self._addresses.pop(place, None) or _Address()
        self._addresses[place] = found
        if len(self._addresses) > MOST_ADDRESSES:
            self._addresses.popitem(last=False)
        return found

    def warnings(self, now: float) -> list[str]:
        """Returns a sentence for each address from which passwords are guessed."""
        return [
            f"{wrong.times} wrong passwords from {place} within an hour, the last one for user {wrong.user}"
            for place, wrong in self._addresses.items()
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

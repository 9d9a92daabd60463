"""Sessions of users who have logged in: a token stands for user and password until it ends.

The password is needed again when a connection is made, and is kept masked by what follows from the token, which the
client alone has: the memory of this process, read while no request is there, tells no password and no token.
"""

from __future__ import annotations

import hashlib
import secrets
from operator import xor
from typing import NamedTuple

LASTS_S = 120 * 60.0
"""So long a token holds, as by default in MQ."""
MOST_OF_A_USER = 64
"""Beyond them the oldest session of the user ends."""


class _Session(NamedTuple):
    user: str
    masked: bytes
    until_s: float


class LoginSessions:
    """The sessions of one process. ``cookie`` is the name that the token has in a client's store of cookies.

    It ends differently in each process, so that one client may be logged in at several on one machine. Times are those
    of any clock that does not go back, in seconds.
    """

    def __init__(self) -> None:
        self.cookie = f"LtpaToken2_{secrets.token_hex(4)}"
        self._sessions: dict[bytes, _Session] = {}  # by a hash of the token, the oldest first

    def begin(self, user: str, password: str, now_s: float) -> str:
        """Returns the token of a new session."""
        self._prune(now_s)
        of_user = [key for key, one in self._sessions.items() if one.user == user]
        for key in of_user[: max(0, len(of_user) + 1 - MOST_OF_A_USER)]:
            del self._sessions[key]
        token = secrets.token_urlsafe(32)
        self._sessions[_key(token)] = _Session(user, _masked(password.encode(), token), now_s + LASTS_S)
        return token

    def account(self, token: str, now_s: float) -> tuple[str, str] | None:
        """Returns user and password of a token, None for one that is not known or has ended."""
        self._prune(now_s)
        found = self._sessions.get(_key(token))
        return None if found is None else (found.user, _masked(found.masked, token).decode())

    def end(self, token: str) -> None:
        """Ends a session, if there is one."""
        self._sessions.pop(_key(token), None)

    def _prune(self, now_s: float) -> None:
        self._sessions = {key: one for key, one in self._sessions.items() if one.until_s > now_s}


def _key(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()


def _masked(text: bytes, token: str) -> bytes:
    """Returns a text masked by the token, or unmasked; a token masks one text only."""
    return bytes(map(xor, text, hashlib.shake_256(b"mask" + token.encode()).digest(len(text))))

"""Hashes of passwords: scrypt (RFC 7914), with a salt of its own for each."""

from __future__ import annotations

import base64
import binascii
import functools
import hashlib
import hmac
import os

_COST, _BLOCK, _PARALLEL = 1 << 15, 8, 1  # 32 MiB and about 0.1 s
_MEMORY = 128 << 20
_SALT, _LENGTH = 16, 32
LONGEST = 1024
"""Characters of a password at most."""


def hashed(password: str) -> str:
    """Returns ``scrypt:N:r:p:SALT:HASH`` of a password, with a new salt."""
    salt = os.urandom(_SALT)
    digest = _digest(password, salt, _COST, _BLOCK, _PARALLEL)
    return ":".join(["scrypt", str(_COST), str(_BLOCK), str(_PARALLEL), _text(salt), _text(digest)])


@functools.cache
def of_nobody() -> str:
    """Returns a hash to compare for a user who does not exist: so the time of an answer does not tell who does."""
    return hashed(_text(os.urandom(_LENGTH)))


def is_right(password: str, of: str) -> bool:
    """Returns whether this is the password of a hash; takes as long for a wrong one."""
    try:
        kind, cost, block, parallel, salt, digest = of.split(":")
        wanted = _digest(password, base64.b64decode(salt), int(cost), int(block), int(parallel))
        return kind == "scrypt" and hmac.compare_digest(wanted, base64.b64decode(digest))
    except (ValueError, binascii.Error):
        return False


def is_hash(text: str) -> bool:
    """Returns whether this is a hash of :func:`hashed`, of a cost that the daemon can bear."""
    try:
        kind, cost, block, parallel, salt, digest = text.split(":")
        memory = 128 * int(cost) * int(block) * int(parallel)
        is_sound = kind == "scrypt" and 0 < memory <= _MEMORY // 2 and int(cost).bit_count() == 1
        return is_sound and bool(base64.b64decode(salt)) and len(base64.b64decode(digest)) == _LENGTH
    except (ValueError, binascii.Error):
        return False


def _digest(password: str, salt: bytes, cost: int, block: int, parallel: int) -> bytes:
    return hashlib.scrypt(
        password[:LONGEST].encode(), salt=salt, n=cost, r=block, p=parallel, maxmem=_MEMORY, dklen=_LENGTH
    )


def _text(value: bytes) -> str:
    return base64.b64encode(value).decode()

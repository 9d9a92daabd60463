"""Object names: 48 characters of a small alphabet, compared as written (the manual's naming rules)."""

from __future__ import annotations

import re

NAME_LENGTH = 48
RECORD_QUEUE = "SYSTEM.TRIGMON.FILES"
"""Ours: the records of files that are on their way to their messages."""
_NAME = re.compile(r"[A-Za-z0-9./_%]{1,48}\Z")


def is_object_name(name: str) -> bool:
    """Returns whether ``name`` may name a queue, a process or a queue manager."""
    return _NAME.match(name) is not None


def matches(name: str, pattern: str) -> bool:
    """Returns whether a name fits a generic name: an exact one, or one that ends in ``*``."""
    if pattern.endswith("*"):
        return name.startswith(pattern[:-1])
    return name == pattern

"""Shortening what an error quotes: an input may have megabytes, and an error is read by a person."""

from __future__ import annotations

MOST = 800
"""As many characters of one sentence are shown; a name, a path and a reason fit in."""


def shortened(text: str, most: int = MOST) -> str:
    """Returns the text, or where it is longer than ``most`` its beginning, how long it is, and its end."""
    if len(text) <= most:
        return text
    end = most // 4
    return f"{text[: most - end]}[... {len(text)} characters in all ...]{text[-end:]}"

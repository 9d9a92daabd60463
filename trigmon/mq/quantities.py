"""Numbers, spans of time and sizes as people read them: one form of each for every text of this product."""

from __future__ import annotations

from typing import Final

_SECOND_MS: Final = 1000
_UNITS: Final = ((86_400_000, "d", 36 * 3_600_000), (3_600_000, "h", 90 * 60_000), (60_000, "min", 90_000))
"""A unit's milliseconds, its word, and the span in milliseconds from which it is used."""
_SIZES: Final = ("bytes", "KiB", "MiB", "GiB", "TiB")


def span(ms: float) -> str:
    """Returns a span of time in one unit: ``40 ms``, ``3.4 s``, ``40 s``, ``12 min``, ``3 h``, ``5 d``."""
    for unit_ms, word, first_ms in _UNITS:
        if ms >= first_ms:
            return f"{ms / unit_ms:.0f} {word}"
    if ms < _SECOND_MS:
        return f"{int(ms)} ms"
    seconds = int(ms / 100) / 10
    return f"{seconds:.1f} s" if seconds < 10 else f"{int(seconds)} s"


def size(bytes_: float) -> str:
    """Returns a size in the unit that suits it, each of 1024 of the one before: ``512 bytes``, ``1.5 MiB``."""
    value, power = float(bytes_), 0
    while value >= 1024 and power < len(_SIZES) - 1:
        value /= 1024
        power += 1
    return f"{value:.0f} {_SIZES[power]}" if not power or value >= 10 else f"{value:.1f} {_SIZES[power]}"


def number(value: int) -> str:
    """Returns a number with its thousands apart: ``12 000``."""
    return f"{value:,}".replace(",", " ")


def counted(value: int, noun: str) -> str:
    """Returns a number with its noun: ``1 message``, ``12 000 messages``."""
    return f"{number(value)} {noun}{'' if value == 1 else 's'}"

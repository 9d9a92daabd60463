"""A text in this process's memory, where a structure has a pointer to it."""

from __future__ import annotations

LONGEST = 65_536


def read_text(address: int, length: int) -> str:
    """Returns ``length`` bytes from an address on as text; "" for none, and for an address where nothing is.

    It reads by the kernel, which refuses what no memory is, so that a wrong pointer ends no program.
    """
    if not address or not 0 < length <= LONGEST:
        return ""
    try:
        with open("/proc/self/mem", "rb", buffering=0) as memory:  # noqa: PTH123 - one module less
            memory.seek(address)
            return memory.read(length).decode(errors="replace")
    except (OSError, OverflowError, ValueError):
        return ""

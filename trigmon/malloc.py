"""The C library's memory allocator in a process that makes and frees large buffers, again and again.

The GNU C library gives memory that is free at the end of the heap back to the system at once, and takes blocks from 128
KiB on from the system. Both limits rise with the blocks that are freed, but a frame of messages is a dozen of such
blocks: each frame costs a page fault for each 4 KiB of them, a third of the processor time that it takes to read it.

Standard library only.
"""

from __future__ import annotations

import ctypes

KEPT_BYTES = 32 << 20
"""What the process keeps for its next buffers. No block of this size is in the heap: it is the library's own limit."""
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3


def keep_freed_memory() -> bool:
    """Makes the calling process keep freed memory (mallopt(3)). Returns False where the C library has no such call."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return bool(mallopt and mallopt(_M_TRIM_THRESHOLD, KEPT_BYTES) and mallopt(_M_MMAP_THRESHOLD, KEPT_BYTES))

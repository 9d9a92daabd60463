"""The C library's memory allocator in a process that makes and frees large buffers, again and again.

The GNU C library gives memory that is free at the end of the heap back to the system at once, and takes blocks from 128
KiB on from the system. Both limits rise with the blocks that are freed, but a frame of messages is a dozen of such
blocks: each frame costs a page fault for each 4 KiB of them, a third of the processor time that it takes to read it.

Standard library only.
"""

from __future__ import annotations

import ctypes

KEPT_BYTES = 32 << 20
"""What is kept at the end of the heap. Blocks from this size on are no part of it: it is the library's own limit."""
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3


def keep_freed_memory() -> bool:
    """Makes the calling process keep freed memory (mallopt(3)). Returns False where the C library has no such call.

    What is freed below a block that is in use stays, however much it is, until :func:`give_back_freed_memory`.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return bool(mallopt and mallopt(_M_TRIM_THRESHOLD, KEPT_BYTES) and mallopt(_M_MMAP_THRESHOLD, KEPT_BYTES))


def give_back_freed_memory() -> None:
    """Gives all freed memory back to the system, but for what is kept at the end of the heap (malloc_trim(3))."""
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
        trim(ctypes.c_size_t(KEPT_BYTES))

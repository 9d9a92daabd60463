"""The C library's allocator and Python's garbage collector in a process that makes and frees much, again and again.

The GNU C library gives memory that is free at the end of the heap back to the system at once, and takes blocks from 128
KiB on from the system. Both limits rise with the blocks that are freed, but a frame of messages is a dozen of such
blocks: each frame costs a page fault for each 4 KiB of them, a third of the processor time that it takes to read it.

The garbage collector looks at the youngest objects once there are 700 more of them, and at older ones behind ten such
looks. Rows of a thousand messages are more, and none of them is garbage: that is a tenth of the time it takes to
reserve them.

Standard library only.
"""

from __future__ import annotations

import ctypes
import gc

KEPT_BYTES = 32 << 20
"""What is kept at the end of the heap. Blocks from this size on are no part of it: it is the library's own limit."""
YOUNG_OBJECTS = 20_000
"""So many more are there before the garbage collector looks. A queue manager makes next to no garbage in cycles."""
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3


def tune_for_server() -> None:
    """Makes the calling process keep freed memory, and look for garbage seldom, never among what is there already."""
    keep_freed_memory()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, *gc.get_threshold()[1:])


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

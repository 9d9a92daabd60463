"""A process whose memory no other process of its user reads, and of which no core dump is written.

Daemon, monitor and keeper hold passwords, keys and the environment of the service. The programs that a monitor starts
run as the monitor's user, who could else read all of it: by ptrace(2), /proc/PID/mem or /proc/PID/environ (proc(5)).
A program that is executed begins as usual; a fork stays as private as its parent.

Standard library only.
"""

from __future__ import annotations

import ctypes

_PR_SET_DUMPABLE = 4


def keep_memory_private() -> None:
    """Makes the kernel write no core dump of this process and let only root look into it (prctl(2))."""
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)

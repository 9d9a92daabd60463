"""Plays the parent of a keeper that was killed while the program it started was in the middle of its execve(2).

In that moment a process has no command line. Here it has dropped it, and executes the program when the parent begins to
wait for it: a parent that does not wait never finds the program. Prints the runs that the next keeper would take over,
or KEPT where the kernel does not let a process drop its command line.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import sys
import time
from pathlib import Path

from trigmon.keeper import protocol, run_directory, subreaper

KEPT = "its command line is kept"
_PR_SET_MM, _PR_SET_MM_MAP = 35, 14


def play(directory):
    keeper = os.posix_spawn("/bin/true", ["true"], {})
    os.waitid(os.P_PID, keeper, os.WEXITED | os.WNOWAIT)
    (ready, is_ready), (go, may_go) = os.pipe(), os.pipe()
    program = os.fork()
    if not program:
        os.setsid()
        (directory / run_directory.BEGUN).touch()
        drop_command_line()
        os.write(is_ready, b"r")
        os.read(go, 1)
        os.execve("/bin/sleep", ["sleep", "600"], {"TRIGMON_RUN": "r"})
    os.read(ready, 1)
    is_kept = bool(Path(f"/proc/{program}/cmdline").read_bytes())
    known = known_after(keeper, directory, lambda: os.write(may_go, b"g"))
    os.kill(program, signal.SIGKILL)
    print(KEPT if is_kept else [known[pid]["run"] for pid in known if pid == program])


def known_after(keeper, directory, waits):
    """Returns what the parent knows when its keeper has ended; ``waits`` is called each time before it waits."""
    link, keepers_end = socket.socketpair()
    keepers_end.sendall(protocol.line("starts", run="r", directory=str(directory)))
    subreaper._SETTLES_S = 60.0
    subreaper.time.sleep = lambda pause_s, sleep=time.sleep: (waits(), sleep(pause_s))
    parent = subreaper.Subreaper(keeper, link, os.eventfd(0), {})
    parent.watch(os.pipe()[0])
    return parent.known


def drop_command_line():
    """Moves the beginning of this process's arguments and environment to their end (prctl(2), PR_SET_MM_MAP)."""
    libc = ctypes.CDLL(None)
    libc.sbrk.restype = ctypes.c_void_p
    stat = dict(enumerate(run_directory.stat_fields(os.getpid()), 3))  # numbered as in proc_pid_stat(5)
    code, data, heap, stack, end = (26, 27), (45, 46), 47, 28, 51
    kept = [int(stat[number]) for number in (*code, *data, heap)]
    words = [*kept, libc.sbrk(0), *(int(stat[number]) for number in (stack, end, end, end, end))]
    asked = (ctypes.c_uint64 * 13)(*words, 0, 0xFFFFFFFF << 32)  # neither an auxiliary vector nor an executable
    libc.prctl(_PR_SET_MM, _PR_SET_MM_MAP, ctypes.byref(asked), ctypes.c_ulong(ctypes.sizeof(asked)), 0)


if __name__ == "__main__":
    play(Path(sys.argv[1]))

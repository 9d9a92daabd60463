"""Runs a program of ours as a child process that is killed, or kills the queue manager, at its n-th call.

The child is forked and not started anew, so that every call of a program can be its last within a test. The program
itself knows nothing of it: what it sends its calls by is watched.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
from contextlib import contextmanager
from pathlib import Path

from trigmon.client.transport import Transport

KILLED = -signal.SIGKILL
MOMENTS = ("before", "sent")
"""The call is not sent; it is sent, and nobody is there to hear the reply."""


def run(script: Path, *arguments: str, env: dict[str, str], at: int = 0, moment: str = "", victim: int = 0) -> int:
    """The exit status of a program, negative for a signal. At call ``at`` (0: never) SIGKILL goes to ``victim``.

    Victim 0 is the program itself. Where another victim was killed at the program's last call, which ends the program
    well, the status is KILLED all the same: the victim is gone. What the program prints comes with what pytest shows
    of a test that fails.
    """
    sent, at_kill = os.pipe()
    with _forked() as pid:
        if not pid:
            sends_then_dies(at, moment, victim or os.getpid(), at_kill)
            os.environ.clear()
            os.environ.update(env)
            sys.argv = [str(script), *arguments]
            sys.path.insert(0, str(script.parent))
            runpy.run_path(str(script), run_name="__main__")
    os.close(at_kill)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with os.fdopen(sent, "rb") as kills:
        return status or (KILLED if kills.read() else 0)


@contextmanager
def _forked():
    """The child's pid, or 0 in the child, which ends with the block whatever happens in it."""
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        yield pid
        return
    status = 1
    try:
        yield 0
        status = 0
    except BaseException as error:
        os.write(2, f"{type(error).__name__}: {error}\n".encode())
    finally:
        os._exit(status)


def sends_then_dies(at: int, moment: str, victim: int, at_kill: int) -> None:
    """From now on this process kills the victim at the call of that number, and writes to ``at_kill`` before."""
    send, count = Transport.send, 0

    def kill():
        os.write(at_kill, b"k")
        os.kill(victim, signal.SIGKILL)

    def counted(link, call, **named):
        nonlocal count
        count += 1
        if count == at and moment == "before":
            kill()
        number = send(link, call, **named)
        if count == at and moment == "sent":
            kill()
        return number

    Transport.send = counted

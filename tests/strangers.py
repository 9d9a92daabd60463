"""Other users of this machine, whom the kernel knows as that."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import traceback

NOBODY = 65534


def as_nobody(work):
    """Returns what ``work()`` returns in a process of the user nobody, and raises what it raises."""
    return as_user(NOBODY, work)


def as_user(number, work):
    """Returns what ``work()`` returns in a process of this user and group number, and raises what it raises.

    That user may be barred from this checkout, so what ``work`` needs has been imported before.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(number)
            os.setuid(number)
            try:
                reported = (work(), None)
            except Exception as error:
                reported = (None, error)
            os.write(writer, pickle.dumps(reported))
        except BaseException:
            traceback.print_exc()
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        value, error = pickle.load(pipe)
    os.waitpid(child, 0)
    if error:
        raise error
    return value


@contextlib.contextmanager
def meanwhile_as_user(number, work):
    """Runs ``work()`` in a process of the user with this number as long as the block lasts."""
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(number)
            os.setuid(number)
            work()
        except BaseException:
            traceback.print_exc()
        os._exit(0)
    try:
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)

"""A connection to a queue manager elsewhere: how IBM's package is loaded, and what is said where it cannot be."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.bridge.conftest import NEEDS_IBMMQ

AT_ONCE = """
import os, sys, threading
from trigmon.bridge import connection
together, failed = threading.Barrier(16), []
def load():
    together.wait()
    try:
        connection.ibmmq()
    except BaseException as error:
        failed.append(repr(error))
sys.setswitchinterval(1e-5)
threads = [threading.Thread(target=load) for _ in range(16)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(failed, os.environ.get("MQIPY_NOOTEL"))
"""
WITHOUT = "from trigmon.bridge import connection; connection.ibmmq()"


def ran(program, **variables):
    env = {key: value for key, value in os.environ.items() if key not in ("LD_LIBRARY_PATH", "MQIPY_NOOTEL")}
    argv = [sys.executable, "-c", program]
    return subprocess.run(argv, env=env | variables, capture_output=True, text=True, timeout=120, check=False)


@NEEDS_IBMMQ
def test_threads_that_load_the_package_at_once_leave_the_environment_as_it_was(library_directory):
    done = ran(AT_ONCE, LD_LIBRARY_PATH=str(library_directory))
    assert done.stdout == "[] None\n", done.stderr


@NEEDS_IBMMQ
def test_without_the_library_the_remedy_is_named():
    done = ran(WITHOUT)
    assert "ibmmq cannot load the MQI's library (libmq" in done.stderr, done.stderr
    assert "LD_LIBRARY_PATH=$(trigmon mqi path)" in done.stderr

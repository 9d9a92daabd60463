"""A PySpark program ends with the Java machine that is its driver.

spark-submit starts the program as its own child. On this machine the keeper ends what is left behind. On a
cluster's worker nobody is: a program whose driver was killed there would go on for ever with what it got of a queue.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from functools import cache

_LOOK_S = 0.5
_GRACE_S = 10.0


@cache
def end_with_it() -> None:
    """Makes the kernel end this program by SIGTERM when its driver ends; nothing if it is no driver's child."""
    if "PYSPARK_GATEWAY_PORT" in os.environ and "TRIGMON_RUN" in os.environ:
        threading.Thread(target=_watch, args=(os.getppid(),), name="driver", daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK_S)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_GRACE_S)
    os.kill(os.getpid(), signal.SIGKILL)

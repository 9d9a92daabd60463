"""Errors while Spark plans, in one line: what is wrong with which object, and what helps."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from trigmon.mq.errors import MQError, QMgrNotAvailable, UnknownObjectName

_HIDE = "SPARK_HIDE_TRACEBACK"
_START = "start the queue manager (trigmon run), or name another by the option address or qmgr"


@contextmanager
def one_line(queue: str = "") -> Iterator[None]:
    """Lets an error leave a process of Spark's without its traceback, with the remedy where it has none.

    Spark sends the text of an error to the driver with all frames before it. It reads this variable when the error has
    left our code, and the process ends with that: nothing else is hidden.
    """
    try:
        yield
    except (MQError, ValueError, RuntimeError) as error:
        os.environ[_HIDE] = "1"
        if isinstance(error, UnknownObjectName) and queue and error.about == queue:
            raise UnknownObjectName(
                f"{queue}: the queue manager has no such queue; DEFINE QLOCAL({queue}) makes it, "
                "DISPLAY QUEUE(*) lists those that it has"
            ) from None
        if isinstance(error, QMgrNotAvailable) and _START not in error.about:  # blocks of this kind may be nested
            raise QMgrNotAvailable(f"{error.about}; {_START}") from None
        raise

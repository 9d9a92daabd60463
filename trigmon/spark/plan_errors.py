"""Errors while Spark plans, in one line: what is wrong with which object, and what helps."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from trigmon.mq.errors import MQError, QMgrNotAvailable, UnknownObjectName
from trigmon.rules.remedies import quoted_name

_HIDE = "SPARK_HIDE_TRACEBACK"
_START = "start the queue manager (trigmon run), or name another by the option address or qmgr"


@contextmanager
def one_line(queue: str = "") -> Iterator[None]:
    """Lets an error leave a process of Spark's without its traceback, as :func:`remedy` words it.

    Spark sends the text of an error to the driver with all frames before it. It reads this variable when the error has
    left our code, and the process ends with that: nothing else is hidden.
    """
    try:
        with remedy(queue):
            yield
    except (MQError, ValueError, RuntimeError):
        os.environ[_HIDE] = "1"
        raise


@contextmanager
def remedy(queue: str = "") -> Iterator[None]:
    """Adds what helps to the error for a queue or a queue manager that is not there."""
    try:
        yield
    except UnknownObjectName as error:
        if not queue or error.about != queue:
            raise
        raise UnknownObjectName(
            f"{queue}: the queue manager has no such queue; DEFINE QLOCAL({quoted_name(queue)}) makes it, "
            "DISPLAY QUEUE(*) lists those that it has"
        ) from None
    except QMgrNotAvailable as error:
        if _START in error.about:  # blocks of this kind may be nested
            raise
        raise QMgrNotAvailable(f"{error.about}; {_START}") from None

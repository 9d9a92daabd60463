"""Errors while Spark plans, in one line: what is wrong with which object, and what helps."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from trigmon.mq.errors import MQError, QMgrNotAvailable, UnknownObjectName
from trigmon.rules.remedies import quoted_name
from trigmon.spark.sinks.sink import SinkError

_HIDE = "SPARK_HIDE_TRACEBACK"
_START = "start the queue manager (trigmon run), or name another by the option address or qmgr"
_AT_ANY_TIME = "PYTHON_DATA_SOURCE_ERROR"
_OF_PLANS = ("DATA_SOURCE_NOT_FOUND", "CODEC_NOT_AVAILABLE")
_NO_FORMAT = re.compile(r"[^\n]*\n: org\.apache\.spark\.SparkClassNotFoundException: ([^\n]*)")
"""Behind the class of Java's exception stands its text, and a message's text before it nowhere."""


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


@contextmanager
def plan_errors(what: str) -> Iterator[None]:
    """Makes an error of Spark's planning one of the sink: a frame is planned by its columns, not by its messages."""
    try:
        yield
    except Exception as error:
        why = _of_plan(error).strip()
        if not why:
            raise
        raise SinkError(f"{what}: {why.splitlines()[0]}") from error


def _of_plan(error: Exception) -> str:
    """Returns what an error of planning says, empty for any other.

    An unknown format, and a codec that there is not, are no AnalysisException of Spark's. What a data source in Python
    raises is one, at a commit too.
    """
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import AnalysisException, PySparkException

    condition = (isinstance(error, PySparkException) and error.getCondition()) or ""
    if condition.startswith(_AT_ANY_TIME):
        return ""
    if isinstance(error, AnalysisException) or condition.startswith(_OF_PLANS):
        return str(error)
    found = _NO_FORMAT.match(str(error)) if isinstance(error, Py4JJavaError) else None
    return found[1] if found else ""

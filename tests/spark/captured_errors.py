"""Errors as PySpark makes them of exceptions in Java, whose causes are asked for one by one."""

from __future__ import annotations


class CapturedError(Exception):
    """An error of PySpark's, with the exception in Java that it stands for."""


class Throwable:
    """An exception in Java, as Py4J shows it."""

    def __init__(self, name, message, *causes):
        self._name, self._message, self._causes = name, message, causes

    def getClass(self):  # noqa: N802 - Java's name
        return self

    def getName(self):  # noqa: N802 - Java's name
        return self._name

    def getMessage(self):  # noqa: N802 - Java's name
        return self._message

    def getCause(self):  # noqa: N802 - Java's name
        return Throwable(*self._causes[0], *self._causes[1:]) if self._causes else None


def captured(text, *causes):
    """Returns an error of this text, with causes of (class, message) in Java, the root last."""
    error = CapturedError(text)
    error._origin = Throwable("org.apache.spark.sql.streaming.StreamingQueryException", text, *causes)
    return error

"""What an error says, with the causes that Spark keeps apart from it, and the line of it that tells most."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

_TRACEBACK = "Traceback (most recent call last):"
_OF_JAVA, _OF_STREAM, _CAUSE = "An error occurred while calling", "[STREAM_FAILED]", "Caused by: "
_MOST_CAUSES = 50


class JavaCause(NamedTuple):
    """A cause in Java: the name of its class, and its text."""

    class_name: str
    message: str


def chain(error: BaseException) -> Iterator[BaseException]:
    """Yields the error and the ones that led to it, as a traceback shows them."""
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        yield at
        at = at.__cause__ or (None if at.__suppress_context__ else at.__context__)


def java_causes(error: BaseException) -> list[JavaCause]:
    """Returns the causes that an error of PySpark has in Java, the root last.

    The text of a stream's error names the first of them alone. They are asked for one by one: in a printed trace, the
    text of a message that one of them quotes could be taken for another one.
    """
    found: list[JavaCause] = []
    with suppress(Exception):  # Java may be gone
        at = getattr(error, "_origin", None)  # of pyspark.errors' CapturedException, which has no public name for it
        while at is not None and (at := at.getCause()) is not None and len(found) < _MOST_CAUSES:
            found.append(JavaCause(at.getClass().getName(), at.getMessage() or ""))
    return found


def why(error: BaseException, most: int = 1000) -> str:
    """Returns the most telling line of an error: the exception of a Python worker, or the root cause of Java."""
    lines = _lines(str(error))
    name = type(error).__name__
    causes = [line for line in lines if line.startswith(_CAUSE) and ": " in line.removeprefix(_CAUSE)]
    text = _raised(lines) or (lines[0] if lines else "")
    if text.startswith(_OF_JAVA) and causes:
        text = causes[-1].removeprefix(_CAUSE)
    elif text.startswith(_OF_STREAM) and (roots := java_causes(error)):
        message = _lines(roots[-1].message)
        text = _raised(message) or ": ".join((roots[-1].class_name, *message[:1]))
    return f"{name}: {text}"[:most] if not text.startswith(name) else text[:most]


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def _raised(lines: Sequence[str]) -> str:
    """Returns the exception at the end of the last traceback of Python, behind its frames, which are indented."""
    heads = [at for at, line in enumerate(lines) if _TRACEBACK in line]
    return next((line for line in lines[heads[-1] + 1 :] if not line[0].isspace()), "") if heads else ""

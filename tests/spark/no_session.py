"""What stands for a Spark session in jobs that read no frame, and so start no Spark."""

from __future__ import annotations


class NoSession:
    """A session by its name alone."""

    readStream = None  # noqa: N815 - Spark's name


NO_SESSION = NoSession()

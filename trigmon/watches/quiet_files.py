"""Which of the files that were seen are complete: those that have not changed for a while."""

from __future__ import annotations

from collections.abc import Iterable

from trigmon.watches.watched import SeenFile


class QuietFiles:
    """Remembers since when each file of a directory has been as it is."""

    def __init__(self) -> None:
        self._since: dict[str, tuple[tuple[int, int, int], float]] = {}

    def complete(self, seen: Iterable[SeenFile], quiet_s: float, now: float) -> tuple[list[SeenFile], float | None]:
        """Returns the files that have not changed for ``quiet_s``, and when the next one may be complete, if any.

        The oldest comes first, by the time of its last change and then by its name. Times are of one monotonic clock,
        in seconds: a clock that is set, or another machine's, makes no file complete.
        """
        before, self._since = self._since, {}
        complete: list[SeenFile] = []
        next_at: float | None = None
        for file in seen:
            version, since = before.get(file.name, (file.version, now))
            since = since if version == file.version else now
            self._since[file.name] = file.version, since
            if since + quiet_s <= now:
                complete.append(file)
            elif next_at is None or since + quiet_s < next_at:
                next_at = since + quiet_s
        return sorted(complete, key=lambda file: (file.mtime_ns, file.name)), next_at

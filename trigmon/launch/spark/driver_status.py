"""Progress of a Spark application, read from its driver's web server (Spark's monitoring REST API, ``/api/v1``).

The server may be anything that the run's program has bound. So its answers are limited in time and size, decoded field
by field, and only ever displayed. The driver of a long stream forgets old jobs and stages: :class:`Tally` keeps their
sums.
"""

from __future__ import annotations

import calendar
import re
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Final, Generic, TypeVar

import msgspec

from trigmon.launch.spark import log_lines, web
from trigmon.launch.spark.cold import java_command, web_page

LARGEST = 8 << 20
MOST: Final = 1 << 53
"""No number is larger: the record of a run goes to the queue manager, whose messages have 64 bits for a number."""

_Number = Annotated[int, msgspec.Meta(ge=0, le=MOST)]
_Instant = Annotated[int, msgspec.Meta(ge=0, le=253_402_300_799_999)]  # the end of the year 9999
_API = "/api/v1/applications"
_PROC = Path("/proc")
_LISTENS = "0A"
_SOCKET = re.compile(r"socket:\[([0-9]+)\]")
_SPARKS_OWN = frozenset(range(4040, 4041 + java_command.PORTS))


class Where(msgspec.Struct, frozen=True):
    """An application: the address of its driver, its id, when it began (ms since 1970), and which of its jobs count.

    ``tag`` is part of the tags of the jobs that count ("": all), as on a Spark Connect server of several runs.
    ``page_key`` is the key of the page ("": it asks for none).
    """

    url: str
    application_id: str = ""
    began_ms: int = 0
    tag: str = ""
    page_key: str = ""


class Progress(msgspec.Struct, frozen=True):
    """Counts of finished and known work. Spark learns of jobs, and so of stages and tasks, only as they come.

    ``first_rows_ms`` is when the first task was launched that read or wrote rows, by the driver's clock; 0: none yet.
    """

    jobs: int = 0
    stages_done: int = 0
    stages: int = 0
    tasks_done: int = 0
    tasks: int = 0
    tasks_failed: int = 0
    rows_read: int = 0
    rows_written: int = 0
    first_rows_ms: int = 0


class _Attempt(msgspec.Struct):
    startTimeEpoch: _Instant = 0  # noqa: N815 - Spark's name, as all of these


class _Application(msgspec.Struct):
    id: str
    attempts: list[_Attempt] = []


class _Job(msgspec.Struct):
    jobId: _Number  # noqa: N815
    stageIds: list[int] = []  # noqa: N815
    jobTags: list[str] = []  # noqa: N815
    numTasks: _Number = 0  # noqa: N815
    numCompletedTasks: _Number = 0  # noqa: N815
    numSkippedTasks: _Number = 0  # noqa: N815
    numFailedTasks: _Number = 0  # noqa: N815
    numCompletedStages: _Number = 0  # noqa: N815
    numSkippedStages: _Number = 0  # noqa: N815

    @property
    def key(self) -> int:
        return self.jobId

    @property
    def sums(self) -> tuple[int, ...]:
        done, stages = self.numCompletedStages, len(self.stageIds) - self.numSkippedStages
        tasks = self.numTasks - self.numSkippedTasks
        return 1, done, max(stages, done), self.numCompletedTasks, max(tasks, 0), self.numFailedTasks


class _Stage(msgspec.Struct):
    stageId: _Number  # noqa: N815
    attemptId: _Number = 0  # noqa: N815
    inputRecords: _Number = 0  # noqa: N815
    outputRecords: _Number = 0  # noqa: N815
    firstTaskLaunchedTime: str = ""  # noqa: N815

    @property
    def key(self) -> tuple[int, int]:
        return self.stageId, self.attemptId

    @property
    def sums(self) -> tuple[int, ...]:
        return self.inputRecords, self.outputRecords


_Row = TypeVar("_Row", _Job, _Stage)


class _Sums(Generic[_Row]):
    """Sums over the rows that are listed now and those that were listed once."""

    def __init__(self, width: int) -> None:
        self._gone = [0] * width
        self._listed: dict[object, tuple[int, ...]] = {}

    def take(self, rows: Iterable[_Row]) -> list[int]:
        now: dict[object, tuple[int, ...]] = {row.key: row.sums for row in rows}
        for key, sums in self._listed.items():
            if key not in now:
                self._gone = [before + more for before, more in zip(self._gone, sums, strict=True)]
        self._listed = now
        return [min(before + sum(sums[at] for sums in now.values()), MOST) for at, before in enumerate(self._gone)]


class Tally:
    """The progress of one application, over all answers of its driver so far."""

    def __init__(self, where: Where) -> None:
        self.where = where
        self._jobs: _Sums[_Job] = _Sums(6)
        self._stages: _Sums[_Stage] = _Sums(2)
        self._first_rows_ms = 0

    def look(self, deadline_s: float) -> Progress:
        """Asks the driver and returns the progress. Raises OSError for no answer, ValueError for a bad one."""
        until = time.monotonic() + deadline_s
        base = f"{self.where.url}{_API}/{self.where.application_id}"
        jobs = msgspec.json.decode(_asked(f"{base}/jobs", until, self.where.page_key), type=list[_Job])
        stages = msgspec.json.decode(_asked(f"{base}/stages", until, self.where.page_key), type=list[_Stage])
        return self.taken(jobs, stages)

    def taken(self, jobs: list[_Job], stages: list[_Stage]) -> Progress:
        """Returns the progress after the driver's answers ``jobs`` and ``stages``. Pure but for its sums."""
        if self.where.tag:
            jobs = [job for job in jobs if any(self.where.tag in tag for tag in job.jobTags)]
            ours = {number for job in jobs for number in job.stageIds}
            stages = [stage for stage in stages if stage.stageId in ours]
        if not self._first_rows_ms:
            began = [epoch_ms(one.firstTaskLaunchedTime) for one in stages if any(one.sums)]
            self._first_rows_ms = min((ms for ms in began if ms), default=0)
        count, stages_done, of_stages, tasks_done, tasks, tasks_failed = self._jobs.take(jobs)
        rows_read, rows_written = self._stages.take(stages)
        return Progress(
            jobs=count,
            stages_done=stages_done,
            stages=of_stages,
            tasks_done=tasks_done,
            tasks=tasks,
            tasks_failed=tasks_failed,
            rows_read=rows_read,
            rows_written=rows_written,
            first_rows_ms=self._first_rows_ms,
        )


def application(url: str, deadline_s: float, tag: str = "", page_key: str = "") -> Where | None:
    """Returns the application whose driver is at ``url``; None when it is not ready. Raises OSError, ValueError."""
    until = time.monotonic() + deadline_s
    listed = msgspec.json.decode(_asked(f"{url}{_API}", until, page_key), type=list[_Application])
    if not listed:
        return None
    one = listed[0]
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,128}", one.id):  # it becomes part of the next URL
        raise ValueError(f"{one.id!r} is no application's id")
    return Where(url, one.id, max((each.startTimeEpoch for each in one.attempts), default=0), tag, page_key)


def of_local_driver(log: str, pid: int) -> str:
    """Returns the address of the web server of the driver that is this process; "" when it is not known (yet).

    It is the one in the driver's log. Where the log is too quiet, it is one of the ports that Spark tries by default.
    No other port is ever asked: it may belong to the driver's other servers, or to the job's own.
    """
    listens = ports_of(pid)
    if address := log_lines.ui_in(log):
        host, _, port = address.rpartition(":")
        if not listens:  # another user's process, whose log may contain anything
            return f"http://127.0.0.1:{port}" if int(port) in _SPARKS_OWN else ""
        if int(port) not in listens:
            return ""
        return f"http://127.0.0.1:{port}" if host in ("http://0.0.0.0", "http://[::]") else address
    return next((f"http://127.0.0.1:{port}" for port in sorted(listens & _SPARKS_OWN)), "")


def ports_of(pid: int) -> set[int]:
    """Returns the TCP ports on which a process listens; none where the process may not be inspected."""
    ours = set()
    with suppress(OSError):
        for entry in (_PROC / str(pid) / "fd").iterdir():
            with suppress(OSError):
                if found := _SOCKET.fullmatch(str(entry.readlink())):
                    ours.add(found[1])
    ports = set()
    for table in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in (_PROC / str(pid) / "net" / table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTENS and fields[9] in ours:
                    ports.add(int(fields[1].rpartition(":")[2], 16))
    return ports


def epoch_ms(text: str) -> int:
    """Returns Spark's ``2026-11-21T19:56:56.140GMT`` in milliseconds since 1970, 0 for any other text."""
    try:
        whole, _, rest = text.partition(".")
        return calendar.timegm(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) * 1000 + int(rest[:3])
    except ValueError:
        return 0


def _asked(url: str, until: float, page_key: str) -> bytes:
    answer = web.ask(url, max(0.01, until - time.monotonic()), headers=web_page.headers(page_key), largest=LARGEST)
    if answer.status != 200:
        raise ValueError(f"{url}: {answer.status}")
    return answer.body

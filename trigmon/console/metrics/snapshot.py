"""What a queue manager is asked for its metrics: a snapshot, read by an ordinary client.

A queue manager that does not answer has a snapshot too, which says so. Queues are read a few at a time: the calls of
other clients are performed in between.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from enum import IntEnum
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from trigmon.client.connection import Connection
from trigmon.mq.calls import QueueStatus, Statistics, Status
from trigmon.mq.errors import MQError
from trigmon.mq.names import matches
from trigmon.mq.paging import all_rows
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Values

PAGE = 128
"""Queues in one call, which keeps others waiting for 1 to 3 ms."""
REST = "(others)"
"""The label of the queues beyond the limit, together; no queue has such a name."""
NONE = "-"
"""A label whose value is blank, as in mq-metric-samples."""
PLATFORM = "UNIX"

_STOPPING = {Reason.Q_MGR_QUIESCING, Reason.Q_MGR_STOPPING, Reason.CONNECTION_QUIESCING, Reason.CONNECTION_STOPPING}


class QmgrStatus(IntEnum):
    """``MQQMSTA_*`` as far as a client can tell; 0, which IBM does not define, is a queue manager without an answer."""

    UNREACHABLE = 0
    RUNNING = 2
    QUIESCING = 3


class QueueSelection(NamedTuple):
    """The queues with series of their own: generic names, those after ``!`` left out, and how many at most."""

    names: Sequence[str] = ("*",)
    most: int = 1000


class QueueFigures(msgspec.Struct, frozen=True):
    """A queue's row of DISPLAY QSTATUS, with its labels, which all of its series share."""

    labels: dict[str, str]
    row: dict[str, Any]


class SparkServer(msgspec.Struct, frozen=True):
    """A Spark Connect server of a monitor that uses the same data directory."""

    server_id: str
    master: str
    is_up: bool
    resident_bytes: int


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A queue manager at one moment. ``status`` and ``statistics`` are the values of these calls; empty: no answer."""

    q_mgr_name: str
    qmgr_status: QmgrStatus
    version: str = ""
    status: dict[str, Any] = {}
    statistics: dict[str, Any] = {}
    queues: list[QueueFigures] = []
    rest: list[dict[str, Any]] = []
    dead_letters: int = 0
    servers: list[SparkServer] = []
    taken_s: float = 0.0

    @property
    def is_answering(self) -> bool:
        """Whether the queue manager has answered."""
        return self.qmgr_status is QmgrStatus.RUNNING


def take_snapshot(
    connect: Callable[[], Connection], q_mgr_name: str, selection: QueueSelection, directory: Path | None
) -> Snapshot:
    """Returns the queue manager as it is now; ``q_mgr_name`` is its name where it does not answer.

    The files of Spark Connect servers are looked for in the data ``directory``.
    """
    began_s = time.perf_counter()
    try:
        with connect() as qm:
            snapshot = _answered(qm, selection)
    except MQError as error:
        status = QmgrStatus.QUIESCING if error.reason in _STOPPING else QmgrStatus.UNREACHABLE
        snapshot = Snapshot(q_mgr_name=q_mgr_name, qmgr_status=status)
    servers = list(_servers(directory)) if directory is not None else []
    return msgspec.structs.replace(snapshot, servers=servers, taken_s=time.perf_counter() - began_s)


def unready(connect: Callable[[], Connection]) -> str:
    """Returns why the queue manager is not ready for work; blank where it is.

    It is ready when it answers, takes puts, and a monitor reads each initiation queue that triggering queues name. A
    queue that is held, or whose programs fail, does not make it unready: other queues work.
    """
    try:
        with connect() as qm:
            found = qm.ask(Status(), Values).values["attention"]
    except MQError as error:
        return str(error)
    return "; ".join(
        f"{each['name']}: {each['text']}".removeprefix(": ") for each in found if each["kind"] in ("disk", "no_monitor")
    )


def _answered(qm: Connection, selection: QueueSelection) -> Snapshot:
    statistics = qm.ask(Statistics(), Values).values
    status = qm.ask(Status(), Values).values
    rows = list(_rows(qm, selection.names))
    named = [row for row in rows if row["definition_type"] != "temporary_dynamic"][: selection.most]
    with_series = {row["name"] for row in named}
    dead = status["dead_letter_q_name"]
    return Snapshot(
        q_mgr_name=qm.q_mgr_name,
        qmgr_status=QmgrStatus.RUNNING,
        version=qm.server_version,
        status=status,
        statistics=statistics,
        queues=[QueueFigures(_labels(qm.q_mgr_name, row), row) for row in named],
        rest=[row for row in rows if row["name"] not in with_series],
        dead_letters=sum(row["current_q_depth"] for row in _rows(qm, [dead] if dead else [])),
    )


def _rows(qm: Connection, names: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yields the rows of the queues of these generic names, each once, by name within each."""
    without = [name[1:] for name in names if name.startswith("!")]
    wanted = [name for name in names if not name.startswith("!")]
    for number, pattern in enumerate(wanted):
        for row in all_rows(qm.call, QueueStatus(q_name=pattern, limit=PAGE)):
            if not any(matches(row["name"], other) for other in (*without, *wanted[:number])):
                yield row


def _labels(q_mgr_name: str, row: dict[str, Any]) -> dict[str, str]:
    return {
        "qmgr": q_mgr_name,
        "queue": row["name"],
        "usage": "XMITQ" if row["usage"] == "transmission" else "NORMAL",
        "description": row["description"] or NONE,
        "cluster": NONE,
        "platform": PLATFORM,
    }


def _servers(directory: Path) -> Iterator[SparkServer]:
    """Yields the Spark Connect servers whose records lie there; none where they cannot be read."""
    with suppress(OSError):
        if not (directory / "spark" / "servers").is_dir():
            return
        import os

        from trigmon.launch.spark.warm import connect_server

        shelf = connect_server.Shelf(directory)
        for server in shelf.all_servers():
            resident_bytes = 0
            if found := connect_server.process_of(shelf.directory(server.server_id)):
                pid, pidfd = found
                os.close(pidfd)
                resident_bytes = connect_server.memory_of_session(pid)
            is_up = bool(resident_bytes) and connect_server.listens(server.port)
            yield SparkServer(server.server_id, server.master, is_up, resident_bytes)

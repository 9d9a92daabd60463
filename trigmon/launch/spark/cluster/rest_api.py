"""A standalone cluster's master by HTTP: its REST server submits, tells and kills drivers; its web page lists them.

The REST server runs Python though spark-submit does not: the driver's main class is SparkSubmit itself, and its
arguments are those of spark-submit in client mode, so the driver is the worker's process (Spark's own documentation of
the standalone mode has the example). It asks nobody who he is, unless the cluster's administrator has put a filter in
front of it: then ``token`` is what it is shown (``Authorization: Bearer``, as Spark's JWSFilter wants it).

Standard library only: the supervisor imports it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trigmon.launch.spark import web

FINISHED = "FINISHED"
ENDED = (FINISHED, "FAILED", "KILLED", "ERROR")
"""The states a driver does not leave; FINISHED is the good one."""

RUN = "spark.trigmon.run"
"""The property by which a driver's command line tells which run it is of."""

_ASK_S, _CREATE_S = 3.0, 10.0
_MAIN = "org.apache.spark.deploy.SparkSubmit"
_HEAD = 1 << 16


class RefusedError(Exception):
    """The master answered, and will not. The text is its own."""


class Status:
    """What the master says of a driver; ``state`` is "" when it does not know it."""

    def __init__(self, state: str, worker: str = "", worker_id: str = "", message: str = "") -> None:
        self.state = state
        self.worker = worker
        self.worker_id = worker_id
        self.message = message


class Master:
    """One cluster. ``rest`` are the addresses of its REST servers, one a master; ``pages`` of their web pages."""

    def __init__(self, rest: Sequence[str], pages: Sequence[str], token: str = "") -> None:
        self._rest = [address.rstrip("/") for address in rest]
        self._pages = [address.rstrip("/") for address in pages]
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    @property
    def address(self) -> str:
        """Where it is asked first."""
        return self._rest[0]

    def create(self, arguments: Sequence[str], properties: Mapping[str, str], environment: Mapping[str, str]) -> str:
        """Submits a driver, once; its id.

        Raises RefusedError, web.NotReachedError (then no driver was submitted), web.NoAnswerError (then one may be).
        """
        wanted = {
            "action": "CreateSubmissionRequest",
            "appResource": "",
            "mainClass": _MAIN,
            "appArgs": list(arguments),
            "clientSparkVersion": "4",
            "sparkProperties": dict(properties),
            "environmentVariables": dict(environment),
        }
        said = self._said("POST", "create", _CREATE_S, json.dumps(wanted).encode())
        if not said.get("success"):
            raise RefusedError(str(said.get("message") or said))
        return str(said["submissionId"])

    def status(self, driver: str) -> Status:
        """What has become of a driver. Raises RefusedError, OSError when no master answers."""
        said = self._said("GET", f"status/{driver}")
        if not said.get("success") and said.get("message"):
            raise RefusedError(str(said["message"]))
        return Status(*(str(said.get(name) or "") for name in ("driverState", "workerHostPort", "workerId", "message")))

    def kill(self, driver: str) -> bool:
        """Has a driver killed; False: it has ended, or the master does not know it. Raises RefusedError, OSError."""
        return bool(self._said("POST", f"kill/{driver}", body=b"").get("success"))

    def drivers(self, since_ms: int) -> list[tuple[str, str]]:
        """The drivers of our kind that were submitted since, each with its worker's id. Raises OSError."""
        page = self._page()
        listed = [*page.get("activedrivers", []), *page.get("completeddrivers", [])]
        return [
            (str(each["id"]), str(each.get("worker") or ""))
            for each in listed
            if each.get("mainclass") == _MAIN and int(each.get("starttime") or 0) >= since_ms
        ]

    def log(self, driver: str, worker_id: str, name: str, last: int = 0) -> str:
        """The last bytes of what a driver wrote to ``name``, stdout or stderr; 0: the first 64 KiB of it.

        It is on its worker, whose page the master's names. Raises OSError when either is not reached.
        """
        pages = [each["webuiaddress"] for each in self._page().get("workers", []) if each.get("id") == worker_id]
        if not pages:
            raise web.NotReachedError(f"the master names no page of {worker_id}")
        which = f"offset=0&byteLength={_HEAD}" if not last else f"byteLength={last}"
        url = f"{str(pages[0]).rstrip('/')}/log/?driverId={driver}&logType={name}&{which}"
        answer = web.ask(url, _ASK_S)
        head, _, text = answer.body.decode(errors="replace").partition("\n")
        if answer.status != 200 or not head.startswith("==== Bytes "):
            raise web.NoAnswerError(f"{url}: {answer.status} {head[:200]}")
        return text

    def _said(self, method: str, path: str, deadline_s: float = _ASK_S, body: bytes | None = None) -> dict[str, Any]:
        """What the first master says that is in office."""
        trouble: Exception = web.NotReachedError("no master is named")
        for address in list(self._rest):
            url = f"{address}/v1/submissions/{path}"
            headers = {"Content-Type": "application/json;charset=UTF-8", **self._headers}
            try:
                answer = web.ask(url, deadline_s, method=method, body=body, headers=headers)
                said = _object(answer, url)
            except web.NotReachedError as error:
                trouble = error
                continue
            if answer.status in (401, 403):
                raise RefusedError(f"{url}: {answer.status} {said.get('message', 'not authorized')}")
            if _is_standby(said):
                trouble = web.NotReachedError(f"{url}: {said['message']}")
                continue
            self._rest.sort(key=lambda one: one != address)
            return said
        raise trouble

    def _page(self) -> dict[str, Any]:
        trouble: OSError = web.NotReachedError("no page of a master is named")
        for address in self._pages:
            try:
                said = _object(web.ask(f"{address}/json/", _ASK_S), address)
            except OSError as error:
                trouble = error
                continue
            if said.get("status") == "ALIVE" or len(self._pages) == 1:
                return said
        raise trouble


def of_run(log: Iterator[str] | Sequence[str], run_id: str) -> bool:
    """Whether a driver's log begins with the command of this run's driver."""
    return any(line.startswith("Launch Command:") and f'"-D{RUN}={run_id}"' in line for line in log)


def _object(answer: web.Answer, url: str) -> dict[str, Any]:
    try:
        said = json.loads(answer.body)
    except ValueError:
        said = None
    if not isinstance(said, dict):
        if answer.status in (401, 403):
            return {}
        raise web.NoAnswerError(f"{url}: {answer.status}, and no JSON object")
    return said


def _is_standby(said: Mapping[str, Any]) -> bool:
    message = str(said.get("message") or "")
    return not said.get("success") and "not alive" in message

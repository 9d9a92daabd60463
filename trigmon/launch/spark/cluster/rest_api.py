"""Client of a standalone cluster's master: its REST server submits, shows and kills drivers; its web page lists them.

The REST server runs Python though spark-submit does not: the driver's main class is SparkSubmit itself, and its
arguments are those of spark-submit in client mode, so the driver is the worker's process (Spark's own documentation of
the standalone mode has the example). It does not authenticate its clients, unless the cluster's administrator has put
a filter in front of it: then ``token`` is sent (``Authorization: Bearer``, for Spark's JWSFilter).

Standard library only: the supervisor imports it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trigmon.launch.spark import web

FINISHED = "FINISHED"
ENDED = (FINISHED, "FAILED", "KILLED", "ERROR")
"""The final states of a driver; FINISHED is the successful one."""

RUN = "spark.trigmon.run"
"""The property that names the run in a driver's command line."""

_ASK_S, _CREATE_S = 3.0, 10.0
_MAIN = "org.apache.spark.deploy.SparkSubmit"
_HEAD = 1 << 16


class RefusedError(Exception):
    """The master refused a request. The text is the master's."""


class Status:
    """The master's status of a driver; ``state`` is "" when the master does not know the driver."""

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
        """The address of the REST server that is asked first."""
        return self._rest[0]

    def create(self, arguments: Sequence[str], properties: Mapping[str, str], environment: Mapping[str, str]) -> str:
        """Submits a driver, once, and returns its id.

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
        reply = self._reply("POST", "create", _CREATE_S, json.dumps(wanted).encode())
        if not reply.get("success"):
            raise RefusedError(str(reply.get("message") or reply))
        return str(reply["submissionId"])

    def status(self, driver: str) -> Status:
        """Returns the status of a driver. Raises RefusedError, OSError when no master answers."""
        reply = self._reply("GET", f"status/{driver}")
        if not reply.get("success") and reply.get("message"):
            raise RefusedError(str(reply["message"]))
        names = ("driverState", "workerHostPort", "workerId", "message")
        return Status(*(str(reply.get(name) or "") for name in names))

    def kill(self, driver: str) -> bool:
        """Kills a driver; returns False when it has ended or is unknown to the master. Raises RefusedError, OSError."""
        return bool(self._reply("POST", f"kill/{driver}", body=b"").get("success"))

    def drivers(self, since_ms: int) -> list[tuple[str, str]]:
        """Returns the SparkSubmit drivers that were submitted since, each with its worker's id. Raises OSError."""
        page = self._page()
        listed = [*page.get("activedrivers", []), *page.get("completeddrivers", [])]
        return [
            (str(each["id"]), str(each.get("worker") or ""))
            for each in listed
            if each.get("mainclass") == _MAIN and int(each.get("starttime") or 0) >= since_ms
        ]

    def log(self, driver: str, worker_id: str, name: str, last: int = 0) -> str:
        """Returns the last bytes of a driver's ``name``, stdout or stderr; ``last`` 0: the first 64 KiB of it.

        The worker's page has it; the master's page names that. Raises OSError when either is not reached.
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

    def _reply(self, method: str, path: str, deadline_s: float = _ASK_S, body: bytes | None = None) -> dict[str, Any]:
        """Returns the reply of the first master that is not on standby."""
        trouble: Exception = web.NotReachedError("no master is named")
        for address in list(self._rest):
            url = f"{address}/v1/submissions/{path}"
            headers = {"Content-Type": "application/json;charset=UTF-8", **self._headers}
            try:
                answer = web.ask(url, deadline_s, method=method, body=body, headers=headers)
                reply = _object(answer, url)
            except web.NotReachedError as error:
                trouble = error
                continue
            if answer.status in (401, 403):
                raise RefusedError(f"{url}: {answer.status} {reply.get('message', 'not authorized')}")
            if _is_standby(reply):
                trouble = web.NotReachedError(f"{url}: {reply['message']}")
                continue
            self._rest.sort(key=lambda one: one != address)
            return reply
        raise trouble

    def _page(self) -> dict[str, Any]:
        trouble: OSError = web.NotReachedError("no page of a master is named")
        for address in self._pages:
            try:
                reply = _object(web.ask(f"{address}/json/", _ASK_S), address)
            except OSError as error:
                trouble = error
                continue
            if reply.get("status") == "ALIVE" or len(self._pages) == 1:
                return reply
        raise trouble


def of_run(log: Iterator[str] | Sequence[str], run_id: str) -> bool:
    """Returns whether a driver's log begins with the command of this run's driver."""
    return any(line.startswith("Launch Command:") and f'"-D{RUN}={run_id}"' in line for line in log)


def _object(answer: web.Answer, url: str) -> dict[str, Any]:
    try:
        reply = json.loads(answer.body)
    except ValueError:
        reply = None
    if not isinstance(reply, dict):
        if answer.status in (401, 403):
            return {}
        raise web.NoAnswerError(f"{url}: {answer.status}, and no JSON object")
    return reply


def _is_standby(reply: Mapping[str, Any]) -> bool:
    message = str(reply.get("message") or "")
    return not reply.get("success") and "not alive" in message

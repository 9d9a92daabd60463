"""A master that fails as a real one cannot be made to: answers lost, forgotten drivers, standby, silence.

It speaks what a Spark 4.3 master was seen to speak; test_on_a_cluster.py beside it holds us against a real one.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Master:
    """One server for all: the REST server, the master's page, and the page of its only worker.

    ``drivers`` are submissions by id; ``lose`` answers of this action are lost after it was done; ``is_standby`` and
    ``is_silent`` hold for all; ``waits``: a driver stays SUBMITTED, with no worker and no log.
    """

    def __init__(self):
        self.drivers = {}
        self.lose = {}
        self.is_standby = self.is_silent = self.waits = False
        self.token = ""
        self.asked = []
        self._lock = threading.Lock()
        self._over = threading.Event()
        ours = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(self):
                ours.answer(self)

            def do_POST(self):
                ours.answer(self)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def close(self):
        self._over.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def add(self, run, state="RUNNING"):
        number = len(self.drivers)
        driver = f"driver-20261121200000-{number:04}"
        self.drivers[driver] = {"run": run, "state": state, "starttime": "9" * 13}
        return driver

    def end(self, driver, state):
        self.drivers[driver]["state"] = state

    def count(self, action):
        return sum(action in path for path in self.asked)

    # -- what it says ---------------------------------------------------------------------------------------

    def answer(self, request):
        body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        with self._lock:
            self.asked.append(request.path)
        if self.is_silent:
            self._over.wait(20)
            return
        if self.token and request.path.startswith("/v1") and request.headers["Authorization"] != f"Bearer {self.token}":
            self._send(request, 403, b"<html>no</html>")
            return
        with self._lock:
            reply = self._reply(request.path, body)
        action = next((action for action in self.lose if action in request.path), "")
        if action and self.lose[action]:
            self.lose[action] -= 1
            request.close_connection = True
            return
        self._send(request, 200, reply if isinstance(reply, bytes) else json.dumps(reply).encode())

    def _reply(self, path, body):
        *_, action, last = path.rstrip("/").split("/")
        if path.startswith(("/json", "/log")):
            return self._page() if path.startswith("/json") else self._log(path)
        if self.is_standby:
            return {"success": False, "message": "Exception: Current state is not alive: STANDBY."}
        if last == "create":
            return self._create(json.loads(body))
        known = self.drivers.get(last)
        if action == "kill":
            can = known is not None and known["state"] in ("RUNNING", "SUBMITTED")
            if can:
                known["state"] = "KILLED"
            return {"success": can}
        if known is None:
            return {"success": False}
        at = {} if known["state"] == "SUBMITTED" else {"workerHostPort": "h:1", "workerId": "w-1"}
        return {"success": True, "driverState": known["state"], **at}

    def _create(self, body):
        driver = self.add(body["sparkProperties"]["spark.trigmon.run"], "SUBMITTED" if self.waits else "RUNNING")
        self.drivers[driver] |= {"body": body}
        return {"success": True, "submissionId": driver}

    def _page(self):
        drivers = [
            {
                "id": driver,
                "starttime": known["starttime"],
                "mainclass": "org.apache.spark.deploy.SparkSubmit",
                "worker": "None" if known["state"] == "SUBMITTED" else "w-1",
            }
            for driver, known in self.drivers.items()
        ]
        workers = [{"id": "w-1", "webuiaddress": self.address}]
        return {"status": "ALIVE", "workers": workers, "activedrivers": drivers[:1], "completeddrivers": drivers[1:]}

    def _log(self, path):
        driver = path.partition("driverId=")[2].partition("&")[0]
        run = self.drivers[driver]["run"]
        text = (
            "a last word\n" if "stdout" in path else f'Launch Command: "java" "-Dspark.trigmon.run={run}" "x"\n====\n'
        )
        return f"==== Bytes 0-1 of 1 of /w/{driver} ====\n{text}".encode()

    @staticmethod
    def _send(request, status, body):
        request.send_response(status)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

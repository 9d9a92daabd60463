"""The metrics exporter: serves the metrics and the health of a queue manager over HTTP, or writes them into a file.

It is a process of its own and a client like any other, so a scrape keeps nobody waiting. ``trigmon run`` starts it
where a setting asks for it; ``trigmon metrics --serve`` is the same.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from types import FrameType
from typing import Any, Generic, TypeVar
from urllib.parse import urlsplit

import msgspec

from trigmon.client.address import connect, default_address
from trigmon.client.connection import Connection
from trigmon.console.metrics.exposition import CONTENT_TYPE, families, text
from trigmon.console.metrics.snapshot import QueueSelection, Snapshot, take_snapshot, unready
from trigmon.log import Seldom, logger

log = logger()
T = TypeVar("T")
CONNECT_S, CALL_S = 2.0, 5.0
"""So long connecting and one call may take: a scrape ends before Prometheus gives it up after 10 s."""
SLOW_CLIENT_S = 10.0
"""So long a client may take to send its request, and to read the answer."""
STOP_S = 0.1
"""So long it takes at most until an exporter that is asked to stop stops."""
MOST_AT_ONCE = 16
FRESH_S = 0.25
"""Scrapes within so long share a reading."""
PLAIN = "text/plain; charset=utf-8"


class ExporterOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What is exported and where to: the settings ``metrics``. ``directory`` is the data directory."""

    listen: tuple[str, int] | None = None
    textfile: str | None = None
    interval_s: float = 15.0
    selection: QueueSelection = QueueSelection()
    directory: Path | None = None


class SharedReading(Generic[T]):
    """What ``read`` returned last: shared by all who ask while it is read, and for FRESH_S; ``clock`` is in seconds."""

    def __init__(self, read: Callable[[], T], clock: Callable[[], float]) -> None:
        self._read = read
        self._clock = clock
        self._lock = threading.Lock()
        self._good_until_s = float("-inf")
        self._value: T

    def get(self) -> T:
        """Returns it, read anew where it is older."""
        with self._lock:
            if self._clock() >= self._good_until_s:
                self._value = self._read()
                self._good_until_s = self._clock() + FRESH_S
            return self._value


class Reader:
    """Reads one queue manager, one reading at a time: many scrapes at once are no more work than one."""

    def __init__(
        self,
        address: str | None,
        q_mgr_name: str,
        options: ExporterOptions,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connect = partial(_connected, address or default_address())
        self._q_mgr_name = q_mgr_name
        self._options = options
        self._text = SharedReading(lambda: text(families(self.snapshot())), clock)
        self._why_unready = SharedReading(lambda: unready(self._connect), clock)

    def snapshot(self) -> Snapshot:
        """Returns the queue manager as it is now."""
        return take_snapshot(self._connect, self._q_mgr_name, self._options.selection, self._options.directory)

    def metrics(self) -> bytes:
        """Returns the metrics in Prometheus's text format, at most FRESH_S old."""
        return self._text.get()

    def unready(self) -> str:
        """Returns why the queue manager is not ready for work, blank where it is; at most FRESH_S old."""
        return self._why_unready.get()


def _connected(address: str) -> Connection:
    named = {"application": "trigmon metrics", "run_id": "", "reconnect_s": 0.0}
    return connect(address, timeout_s=CONNECT_S, call_timeout_s=CALL_S, **named)  # type: ignore[arg-type]


def run(reader: Reader, options: ExporterOptions) -> None:
    """Serves and writes until SIGTERM or SIGINT. Raises OSError where nobody can listen at the address."""
    stopped = threading.Event()

    def stop(_number: int, _frame: FrameType | None) -> None:
        # Not here: the signal may have come in the middle of this thread's own wait, which has the event's lock.
        threading.Thread(target=stopped.set, daemon=True).start()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    server = _serve(reader, options.listen) if options.listen else None
    try:
        if options.textfile:
            _write_until(stopped, reader, Path(options.textfile), options.interval_s)
        else:
            stopped.wait()
    finally:
        if server is not None:
            server.shutdown()
            server.server_close()


# -- HTTP ---------------------------------------------------------------------------------------------------


class _Server(ThreadingHTTPServer):
    """Answers requests in threads, so many at a time at most: one more is cut."""

    daemon_threads = True
    reader: Reader

    def __init__(self, *args: Any) -> None:
        self._room = threading.BoundedSemaphore(MOST_AT_ONCE)
        super().__init__(*args)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Starts the thread of a request, where there is room for it."""
        if self._room.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answers a request, and makes room for another."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignores a client that has gone: it is not there to be answered."""


class _Server6(_Server):
    address_family = socket.AF_INET6


def _serve(reader: Reader, address: tuple[str, int]) -> _Server:
    host, port = address
    try:
        server = (_Server6 if ":" in host else _Server)(address, _Handler)
    except OSError as error:
        raise OSError(error.errno, f"metrics.listen: nobody can listen on {host}:{port}: {error.strerror}") from error
    server.reader = reader
    threading.Thread(target=server.serve_forever, args=(STOP_S,), name="http", daemon=True).start()
    log.info("metrics are served", listens=f"{host}:{server.server_address[1]}")
    return server


class _Handler(BaseHTTPRequestHandler):
    """Answers one request; three pages, and nothing changes anything."""

    server: _Server
    timeout = SLOW_CLIENT_S
    server_version, sys_version = "trigmon", ""

    def setup(self) -> None:
        """Sets the deadline of the whole request: ``timeout`` begins anew with each byte."""
        super().setup()
        self._deadline = threading.Timer(SLOW_CLIENT_S, self._cut)
        self._deadline.daemon = True
        self._deadline.start()

    def _cut(self) -> None:
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def parse_request(self) -> bool:
        """Reads the headers. The answer has no deadline but its own: a scrape may wait for another one."""
        is_read = super().parse_request()
        self._deadline.cancel()
        return is_read

    def finish(self) -> None:
        """Ends the deadline with the request."""
        self._deadline.cancel()
        super().finish()

    def do_GET(self) -> None:
        """Answers with the page, 404, or 421."""
        page = _PAGES.get(self.path.partition("?")[0])
        if not _is_ours(self.headers.get("Host", "")):
            page = _misdirected_page
        try:
            status, kind, body = page(self.server.reader) if page else (404, PLAIN, b"/metrics, /healthz or /readyz\n")
        except Exception:
            log.exception("metrics cannot be read")
            status, kind, body = 500, PLAIN, b"metrics cannot be read; see the log\n"
        self.send_response(status)
        for name, value in (("Content-Type", kind), ("Content-Length", str(len(body))), ("Cache-Control", "no-store")):
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_GET  # noqa: N815 - the base class calls it so

    def log_message(self, format: str, *args: object) -> None:
        """Logs nothing: there is a scrape every few seconds."""


def _is_ours(host: str) -> bool:
    """Returns whether a Host is an address or localhost: any other name may be one that a web page points here.

    A probe of HTTP/1.0 names none; a browser always does.
    """
    if not host:
        return True
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or bool(ip_address(name))
    except ValueError:
        return False


def _misdirected_page(_reader: Reader) -> tuple[int, str, bytes]:
    return 421, PLAIN, b"the Host is to be an IP address or localhost\n"


def _ready_page(reader: Reader) -> tuple[int, str, bytes]:
    why = reader.unready()
    return (503, PLAIN, f"{why}\n".encode()) if why else (200, PLAIN, b"ready\n")


_PAGES: dict[str, Callable[[Reader], tuple[int, str, bytes]]] = {
    "/metrics": lambda reader: (200, CONTENT_TYPE, reader.metrics()),
    "/healthz": lambda reader: (200, PLAIN, b"alive\n"),
    "/readyz": _ready_page,
}


# -- the file -----------------------------------------------------------------------------------------------


def _write_until(stopped: threading.Event, reader: Reader, path: Path, interval_s: float) -> None:
    """Writes the file at each interval, and removes it at the end: node_exporter would repeat it for ever."""
    seldom = Seldom(log, interval_s=60.0)
    due_s = time.monotonic()
    while not stopped.wait(max(0.0, due_s - time.monotonic())):
        due_s = time.monotonic() + interval_s
        try:
            write(path, reader.metrics())
        except OSError as error:
            seldom.warning("metrics cannot be written", file=str(path), why=str(error))
    with suppress(OSError):
        path.unlink(missing_ok=True)


def write(path: Path, content: bytes) -> None:
    """Replaces the file as one step. All users may read it: node_exporter is another one. Raises OSError."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_bytes(content)
        beside.chmod(0o644)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)

"""Manages Spark Connect servers in a thread: starts, warms up, checks and replaces them.

A server is a child process of the monitor's keeper, so it outlives a monitor that is killed, and the next monitor finds
it. A server that ends, or does not answer its check in time, is replaced at once; one that is too large or too old, or
whose settings have changed, gets a successor, takes no more runs, and ends when its last run has.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from trigmon.launch import unix
from trigmon.launch.keeper_client import Keeper, KeeperGone
from trigmon.launch.spark.warm import connect_server
from trigmon.launch.spark.warm.attendant import Attendant
from trigmon.log import logger
from trigmon.monitor.spark_servers.external_servers import ExternalServers
from trigmon.monitor.spark_servers.kept_server import KeptServer
from trigmon.monitor.spark_servers.server_checks import ServerChecks
from trigmon.monitor.spark_servers.server_start import GRACE_S, LEASE_S, ServerStarter
from trigmon.monitor.spark_servers.session_admission import SessionAdmission
from trigmon.monitor.spark_servers.session_release import RELEASE_S, SessionReleases

log = logger()
FORKING = "trigmon.spark.warm.job_fork_server"
_START_S = 60.0
_RENEW_S = 20.0
_UNWANTED_S = 60.0
_TICK_S = 0.5
_AFTER_ERROR_S = 1.0


class Servers:
    """One monitor's servers, attendant and fork server.

    ``keeper`` calls its argument with the monitor's keeper; it raises KeeperGone and OSError. With ``forks`` runs
    may be forked.
    """

    def __init__(
        self,
        warm: SessionAdmission,
        data_directory: Path,
        address: str,
        keeper: Callable[[Callable[[Keeper], None]], None],
        environment: Callable[[Mapping[str, str]], dict[str, str]],
        *,
        forks: bool,
    ) -> None:
        self._warm = warm
        self._shelf = warm.shelf
        self._spark_directory = data_directory / "spark"
        self._keeper = keeper
        self._environment = environment
        self._forks = forks
        self._kept: dict[str, KeptServer] = {}
        self._forks_at = 0.0
        self._over_at = 0.0
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._attendant = Attendant(self._spark_directory / "attendant.log", environment({}))
        self._elsewhere = ExternalServers(warm, self._attendant)
        self._releases = SessionReleases(warm, self._attendant)
        self._starter = ServerStarter(warm, data_directory, address, keeper, environment)
        self._checks = ServerChecks(warm, self._attendant, address, self._starter.succeeded, self._kill)
        warm.look = self.look
        if any(each.monitor == warm.monitor for each in self._shelf.all_servers()):
            self.look()

    def look(self) -> None:
        """Wakes the thread, which is started by the first call: most monitors never need it."""
        with self._lock:
            if self._thread is None and not self._over_at:
                self._thread = threading.Thread(target=self._run, name="servers", daemon=True)
                self._thread.start()
        os.eventfd_write(self._wake, 1)

    def stop(self, patience_s: float) -> None:
        """Releases what is to be released, for so long at most, and leaves the servers to the keeper."""
        with self._lock:
            self._over_at = time.monotonic() + patience_s
            thread = self._thread
        if thread is not None:
            os.eventfd_write(self._wake, 1)
            thread.join()
        os.close(self._wake)

    # -- the thread -----------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._spark_directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._find()
            while not self._is_over():
                try:
                    self._look_at_all(time.monotonic())
                    self._wait()
                except Exception:  # no descriptor, no memory, an invalid answer: it may pass, and runs wait
                    log.exception("the Spark Connect servers cannot be checked now")
                    time.sleep(_AFTER_ERROR_S)
        except BaseException:
            log.exception("the thread of the Spark Connect servers has ended")
        finally:
            self._attendant.close()
            for kept in self._kept.values():
                kept.close()

    def _is_over(self) -> bool:
        if not self._over_at:
            return False
        return time.monotonic() >= self._over_at or (self._releases.is_done and self._elsewhere.is_done)

    def _wait(self) -> None:
        poll = select.poll()
        for descriptor in (self._wake, self._attendant.fileno(), *(kept.pidfd for kept in self._kept.values())):
            if descriptor >= 0:
                poll.register(descriptor, select.POLLIN)
        readable = dict(poll.poll(1000 * _TICK_S))
        if self._wake in readable:
            os.eventfd_read(self._wake)
        if self._attendant.fileno() in readable:
            self._attendant.read_answers()
        self._attendant.keep_time(time.monotonic())
        for kept in list(self._kept.values()):
            if kept.pidfd in readable:
                self._gone(kept, kept.why or "it ended")

    def _look_at_all(self, now: float) -> None:
        self._releases.look(now)
        if self._over_at:
            self._elsewhere.stop()
            return
        wanted = self._warm.wanted()
        has_others = self._elsewhere.look(now)
        for kept in list(self._kept.values()):
            self._look_at(kept, wanted, now)
        for master in wanted:
            if not any(kept.server.master == master and not kept.is_old for kept in self._kept.values()):
                self._start(master, now)
        self._manage_fork_server(bool(wanted or self._kept or has_others), now)

    def _manage_fork_server(self, is_needed: bool, now: float) -> None:
        """Makes the keeper run a fork server while forked jobs have, or may soon have, a Spark Connect server."""
        if not self._forks or not (is_needed or self._forks_at):
            return
        if not is_needed:
            self._forks_at = 0.0
            self._ask_keeper(lambda keeper: keeper.cool())
        elif now >= self._forks_at:
            self._forks_at = now + _RENEW_S
            argv = [sys.executable, "-m", FORKING]
            self._ask_keeper(lambda keeper: keeper.warm(argv, self._environment({})))

    def _find(self) -> None:
        """Takes over the servers of an earlier monitor of this name; those that have ended are removed."""
        for server in self._shelf.all_servers():
            if server.monitor != self._warm.monitor:
                continue
            kept = KeptServer(server, self._shelf.directory(server.server_id), is_found=True)
            self._kept[server.server_id] = kept
            if kept.find():
                log.info("Spark Connect server found", server=server.server_id, pid=kept.pid)
            else:
                self._gone(kept, "it had ended before its monitor came")

    # -- one server -----------------------------------------------------------------------------------------

    def _look_at(self, kept: KeptServer, wanted: set[str], now: float) -> None:
        if not kept.pid:
            self._look_for(kept, now)
            return
        if kept.kill_at:
            if now >= kept.kill_at:
                kept.signal(signal.SIGKILL)
            return
        if now >= kept.renew_at:
            kept.renew_at = now + _RENEW_S
            self._ask_keeper(lambda keeper: keeper.keep(kept.server.server_id, LEASE_S))
        uses = self._warm.uses(kept.server.server_id)
        if uses or kept.server.master in wanted:
            kept.used_at = now
        self._checks.look(kept, uses, now)
        if not uses and (now >= kept.used_at + _UNWANTED_S or (kept.is_old and self._has_successor(kept, wanted))):
            self._end(kept, kept.why or "no run needs it", now)

    def _look_for(self, kept: KeptServer, now: float) -> None:
        if not kept.find() and (connect_server.has_ended(kept.directory) or now >= kept.since + _START_S):
            self._gone(kept, "it did not start")

    def _has_successor(self, kept: KeptServer, wanted: set[str]) -> bool:
        return kept.server.master not in wanted or any(
            other.is_warm and not other.is_old and other.server.master == kept.server.master
            for other in self._kept.values()
        )

    def _end(self, kept: KeptServer, why: str, now: float) -> None:
        log.info("Spark Connect server ends", server=kept.server.server_id, why=why)
        kept.why, kept.kill_at = why, now + GRACE_S
        self._warm.is_over(kept.server, why)
        kept.signal(signal.SIGTERM)

    def _kill(self, kept: KeptServer, why: str) -> None:
        log.error("Spark Connect server is killed", server=kept.server.server_id, why=why)
        self._warm.lost_servers.note(kept.server.master, why)
        kept.why, kept.kill_at = why, time.monotonic()
        self._warm.is_over(kept.server, why)
        kept.signal(signal.SIGKILL)

    def _gone(self, kept: KeptServer, why: str) -> None:
        server = kept.server
        if kept.kill_at:  # the monitor asked for it
            log.info("Spark Connect server has ended", server=server.server_id, why=why)
        else:
            tail = unix.tail(kept.directory, ("stderr",), 1024)
            log.warning("Spark Connect server has ended", server=server.server_id, why=why, stderr=tail)
            self._warm.lost_servers.note(server.master, why, tail)
        kept.is_gone = True
        kept.close()
        del self._kept[server.server_id]
        if not kept.is_there:
            self._starter.failed(server.master, time.monotonic())
        self._attendant.ask("forget", lambda _: None, RELEASE_S, url=server.url)
        self._warm.is_over(server, why)
        self._shelf.drop_server(server.server_id)

    def _start(self, master: str, now: float) -> None:
        if kept := self._starter.start(master, now):
            self._kept[kept.server.server_id] = kept

    def _ask_keeper(self, what: Callable[[Keeper], None]) -> None:
        with suppress(KeeperGone, OSError):  # it is found again, or another one comes
            self._keeper(what)

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

from trigmon.keeper import run_directory
from trigmon.keeper.protocol import Message
from trigmon.launch import unix
from trigmon.launch.keeper_client import Keeper, KeeperGone
from trigmon.launch.launch_plan import LaunchError, Session
from trigmon.launch.spark.warm import connect_server
from trigmon.launch.spark.warm.attendant import GONE, Attendant
from trigmon.launch.spark.warm.connect_server import Server
from trigmon.log import logger
from trigmon.monitor.spark_servers.external_servers import ExternalServers
from trigmon.monitor.spark_servers.session_admission import Release, SessionAdmission

log = logger()
FORKING = "trigmon.spark.warm.job_fork_server"
_CHECK_S, _CHECK_S_WHEN_IDLE = 2.0, 10.0
_LEASE_S, _RENEW_S = 90.0, 20.0
# Spark ends Python workers that have had nothing to do for a minute; others take seconds to come.
_WORKERS_S, _OF_WORKERS = 45.0, ("python", "queue")
_START_S, _ANSWER_S, _HEAT_S = 60.0, 300.0, 900.0
_GRACE_S = 10.0
_UNWANTED_S = 60.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 60.0
_RELEASE_S = 10.0
_TICK_S = 0.5
_LEAST_AGE_S = 30.0
HEATED_BY = "SYSTEM.DEFAULT.LOCAL.QUEUE"


class KeptServer:
    """A server that this monitor manages; only the servers' thread uses it.

    ``pid`` is 0 until it is found running. ``is_there``: it answers; ``is_warm``: no run's query is the first of its
    kind; ``is_old``: it takes no more runs. ``kill_at`` is set when it is asked to end.
    """

    def __init__(self, server: Server, directory: Path, *, is_found: bool) -> None:
        self.server = server
        self.directory = directory
        self.is_found = is_found
        self.since = time.monotonic()
        self.pid, self.pidfd = 0, -1
        self.is_asked = self.is_there = self.is_warm = self.is_old = False
        self.check_at = self.renew_at = self.kill_at = 0.0
        self.used_at = self.workers_at = self.since
        self.why = ""

    def signal(self, number: signal.Signals) -> None:
        """Signals the process group of its session, unless its pid is another user's."""
        with suppress(OSError):
            # Its claim names the pid, and a program of this user may write a claim.
            if run_directory.is_of_user(self.pid, os.geteuid()):
                os.killpg(self.pid, number)


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
        self._data_directory = data_directory
        self._address = address
        self._keeper = keeper
        self._environment = environment
        self._forks = forks
        self._kept: dict[str, KeptServer] = {}
        self._start_at: dict[str, float] = {}
        self._pauses: dict[str, float] = {}
        self._forks_at = 0.0
        self._releasing = 0
        self._over_at = 0.0
        self._next_release = 0.0
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._attendant = Attendant(data_directory / "spark" / "attendant.log", environment({}))
        self._elsewhere = ExternalServers(warm, self._attendant)
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
            (self._data_directory / "spark").mkdir(mode=0o700, parents=True, exist_ok=True)
            self._find()
            while not self._is_over():
                try:
                    self._look_at_all(time.monotonic())
                    self._wait()
                except Exception:  # no descriptor, no memory, an invalid answer: it may pass, and runs wait
                    log.exception("the Spark Connect servers cannot be checked now")
                    time.sleep(_FIRST_PAUSE_S)
        except BaseException:
            log.exception("the thread of the Spark Connect servers has ended")
        finally:
            self._attendant.close()
            for kept in self._kept.values():
                if kept.pidfd >= 0:
                    os.close(kept.pidfd)

    def _is_over(self) -> bool:
        if not self._over_at:
            return False
        is_done = not (self._releasing or self._next_release) and self._elsewhere.is_left
        return time.monotonic() >= self._over_at or is_done

    def _wait(self) -> None:
        poll = select.poll()
        for descriptor in (self._wake, self._attendant.fileno(), *(kept.pidfd for kept in self._kept.values())):
            if descriptor >= 0:
                poll.register(descriptor, select.POLLIN)
        heard = dict(poll.poll(1000 * _TICK_S))
        if self._wake in heard:
            os.eventfd_read(self._wake)
        if self._attendant.fileno() in heard:
            self._attendant.hear()
        self._attendant.keep_time(time.monotonic())
        for kept in list(self._kept.values()):
            if kept.pidfd in heard:
                self._gone(kept, kept.why or "it ended")

    def _look_at_all(self, now: float) -> None:
        self._release(now)
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
            found = connect_server.process_of(kept.directory)
            self._kept[server.server_id] = kept
            if found is None:
                self._gone(kept, "it had ended before its monitor came")
            else:
                kept.pid, kept.pidfd = found
                log.info("Spark Connect server found", server=server.server_id, pid=kept.pid)

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
            self._ask_keeper(lambda keeper: keeper.keep(kept.server.server_id, _LEASE_S))
        if not kept.is_asked:
            self._await(kept)
        uses = self._warm.uses(kept.server.server_id)
        if uses or kept.server.master in wanted:
            kept.used_at = now
        if kept.is_there and now >= kept.check_at:
            self._check(kept, uses, now)
        if not uses and (now >= kept.used_at + _UNWANTED_S or (kept.is_old and self._has_successor(kept, wanted))):
            self._end(kept, kept.why or "no run needs it", now)

    def _look_for(self, kept: KeptServer, now: float) -> None:
        found = connect_server.process_of(kept.directory)
        if found is not None:
            kept.pid, kept.pidfd = found
        elif connect_server.has_ended(kept.directory) or now >= kept.since + _START_S:
            self._gone(kept, "it did not start")

    def _has_successor(self, kept: KeptServer, wanted: set[str]) -> bool:
        return kept.server.master not in wanted or any(
            other.is_warm and not other.is_old and other.server.master == kept.server.master
            for other in self._kept.values()
        )

    def _await(self, kept: KeptServer) -> None:
        """Waits until it answers, and has it warmed up then."""
        kept.is_asked = True

        def answered(answer: Message) -> None:
            if kept.server.server_id not in self._kept or kept.kill_at:
                return
            if answer.get("error") == GONE:
                kept.is_asked = False
            elif error := answer.get("error"):
                self._kill(kept, f"it does not answer: {error}")
            else:
                self._answers(kept)

        self._attendant.ask("wait", answered, _ANSWER_S, url=kept.server.url)

    def _answers(self, kept: KeptServer) -> None:
        """Admits waiting runs to it, unless an older server still takes them: then it is warmed up first."""
        self._pauses.pop(kept.server.master, None)
        kept.is_there, kept.check_at = True, time.monotonic() + _CHECK_S
        self._log(kept, "Spark Connect server answers")
        if kept.is_found or not self._warm.has(kept.server.master):
            self._warm.is_warm(kept.server)
        kept.is_warm = kept.is_found  # it has been heated, or is in use
        if not kept.is_warm:
            self._heat(kept)

    def _heat(self, kept: KeptServer) -> None:
        def answered(answer: Message) -> None:
            if kept.server.server_id not in self._kept or kept.kill_at:
                return
            kept.is_warm = True
            if missed := answer.get("missed") or answer.get("error"):
                log.warning("not all of a Spark Connect server is warm", missed=missed)
            self._log(kept, "Spark Connect server is warm", took_ms=answer.get("took_ms"))
            self._warm.is_warm(kept.server)

        self._ask_to_heat(kept, answered, _HEAT_S)

    def _ask_to_heat(self, kept: KeptServer, answered: Callable[[Message], None], by_s: float, *kinds: str) -> None:
        fields = {"directory": str(kept.directory), "queue": HEATED_BY, "address": self._address, "kinds": kinds}
        self._attendant.ask("heat", answered, by_s, url=kept.server.url, **fields)

    def _log(self, kept: KeptServer, event: str, **more: object) -> None:
        took_s = round(time.monotonic() - kept.since, 1)
        log.info(event, server=kept.server.server_id, pid=kept.pid, after_s=took_s, **more)

    def _check(self, kept: KeptServer, uses: int, now: float) -> None:
        """Sends a health check, and checks its memory and its age."""
        deadline_s = self._warm.settings.deadline_s
        kept.check_at = now + deadline_s + _CHECK_S

        def answered(answer: Message) -> None:
            kept.check_at = time.monotonic() + (_CHECK_S if uses else _CHECK_S_WHEN_IDLE)
            error = answer.get("error")
            if error and error != GONE and not kept.kill_at:
                self._kill(kept, f"it does not answer: {error}")

        self._attendant.ask("check", answered, deadline_s, url=kept.server.url)
        if kept.is_warm and not uses and now >= kept.workers_at + _WORKERS_S:
            kept.workers_at = now
            self._ask_to_heat(kept, lambda _: None, _WORKERS_S, *_OF_WORKERS)
        if not kept.is_old and now >= kept.since + _LEAST_AGE_S and (why := self._why_old(kept)):
            kept.is_old, kept.why = True, why
            log.info("Spark Connect server is to be replaced", server=kept.server.server_id, why=why)

    def _why_old(self, kept: KeptServer) -> str:
        settings = self._warm.settings
        rss = connect_server.rss_of_session(kept.pid)
        if settings.rss_limit and rss > settings.rss_limit:
            return f"it takes {rss >> 20} MiB of memory, more than connect.rss_limit allows"
        age_s = time.time() - kept.server.made_ms / 1000
        if settings.max_age_s and age_s > settings.max_age_s:
            return f"it is {age_s / 3600:.1f} hours old, more than connect.max_age_s allows"
        return "" if kept.server.is_as(settings) else "the settings connect have changed"

    def _end(self, kept: KeptServer, why: str, now: float) -> None:
        log.info("Spark Connect server ends", server=kept.server.server_id, why=why)
        kept.why, kept.kill_at = why, now + _GRACE_S
        self._warm.is_over(kept.server, why)
        kept.signal(signal.SIGTERM)

    def _kill(self, kept: KeptServer, why: str) -> None:
        log.error("Spark Connect server is killed", server=kept.server.server_id, why=why)
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
        if kept.pidfd >= 0:
            os.close(kept.pidfd)
        del self._kept[server.server_id]
        if not kept.is_there:
            pause_s = self._pauses.get(server.master, _FIRST_PAUSE_S)
            self._pauses[server.master] = min(2 * pause_s, _LONGEST_PAUSE_S)
            self._start_at[server.master] = time.monotonic() + pause_s
        self._attendant.ask("forget", lambda _: None, _RELEASE_S, url=server.url)
        self._warm.is_over(server, why)
        self._shelf.drop_server(server.server_id)

    def _start(self, master: str, now: float) -> None:
        if now < self._start_at.get(master, 0.0):
            return
        self._start_at[master] = now + _FIRST_PAUSE_S
        server = connect_server.made(self._warm.monitor, Session(master=master), self._warm.settings)
        directory = self._shelf.directory(server.server_id)
        try:
            plan = connect_server.planned(server, self._data_directory, self._address)
            self._shelf.put_server(server)
            environment = self._environment(plan.environment)
            limits = {"time_limit_s": 0.0, "grace_s": _GRACE_S, "lease_s": _LEASE_S}
            self._keeper(lambda keeper: keeper.start(server.server_id, plan, environment, directory, **limits))
        except (LaunchError, OSError, KeeperGone) as error:
            pause_s = self._pauses.get(master, _FIRST_PAUSE_S)
            self._pauses[master] = min(2 * pause_s, _LONGEST_PAUSE_S)
            self._start_at[master] = now + pause_s
            log.error("no Spark Connect server can be started", master=master, error=str(error))
            self._warm.is_over(server, str(error))
            self._shelf.drop_server(server.server_id)
            return
        log.info("Spark Connect server started", server=server.server_id, master=master, port=server.port)
        self._kept[server.server_id] = KeptServer(server, directory, is_found=False)

    # -- sessions -------------------------------------------------------------------------------------------

    def _release(self, now: float) -> None:
        due, self._next_release = self._warm.to_release(now)
        for release in due:
            server = self._shelf.server(release.given.server_id) if release.given.server_id else None
            url = release.given.remote or (server.url if server else "")
            if not url:
                self._shelf.drop_session(release.given.run_id)
                continue
            self._releasing += 1
            self._ask_to_release(release, url)

    def _ask_to_release(self, release: Release, url: str) -> None:
        def answered(answer: Message) -> None:
            self._releasing -= 1
            self._warm.released(release, str(answer.get("error", "")))

        given = release.given
        fields = {"url": url, "user_id": given.user_id, "session_id": given.session_id}
        self._attendant.ask("release", answered, _RELEASE_S, **fields)

    def _ask_keeper(self, what: Callable[[Keeper], None]) -> None:
        with suppress(KeeperGone, OSError):  # it is found again, or another one comes
            self._keeper(what)

"""Admission of warm runs: which may start now, in which session of which Spark Connect server.

A run waits here, due in the ledger, while its server is not warm or the limit of warm runs is reached; its record holds
the reason. A session is recorded before its run starts and released when the run has ended in any way
 (:mod:`trigmon.launch.spark.warm.connect_server`).

An external server is not started or ended by trigmon. It is checked before the first run is sent there and while any
works there; the sessions on one that is away are released when it answers again, and no run is sent there until then.

Methods for programs are called from their threads; a separate thread manages the servers
(:mod:`trigmon.monitor.spark_servers.server_manager`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

from trigmon.launch.launch_plan import LaunchPlan, Order
from trigmon.launch.spark.warm import connect_server
from trigmon.launch.spark.warm.connect_server import Given, Server, Serving, Shelf
from trigmon.log import logger
from trigmon.monitor.spark_servers.lost_servers import LostServers

log = logger()
# Seconds after which a session is released once more: calls that its client sent at its end may arrive late.
_AGAIN_S = 3.0
# How often a release that failed is tried again, and for how long: an external server may be away.
_TRY_AGAIN_S, _GIVE_UP_S = 5.0, 3600.0


class Waiting(NamedTuple):
    """A run that waits for its server."""

    order: Order
    plan: LaunchPlan


class Release(NamedTuple):
    """A session that is to be released at ``at``, the last time if ``is_last``; ``until`` is when it is given up."""

    given: Given
    at: float
    until: float
    is_last: bool = False


class SessionAdmission:
    """Admits the warm runs of one monitor. ``wake`` is called when something may start, or is to be ended."""

    def __init__(self, shelf: Shelf, monitor: str, settings: Serving, q_mgr_name: str) -> None:
        self.shelf = shelf
        self.monitor = monitor
        self.settings = settings
        self._q_mgr_name = q_mgr_name
        self._lock = threading.Lock()
        self._waiting: dict[str, Waiting] = {}
        self._reasons: dict[str, str] = {}
        self._active: dict[str, Given] = {}
        self._warm: dict[str, Server] = {}
        self._troubles: dict[str, str] = {}
        self.lost_servers = LostServers()
        self._elsewhere: dict[str, str] = {}
        self._server_losses: dict[str, str] = {}
        self._releases: list[Release] = []
        self._expected: frozenset[str] = frozenset()
        self._expected_elsewhere: frozenset[str] = frozenset()
        self.wake: Callable[[], None] = lambda: None
        self.look: Callable[[], None] = lambda: None

    # -- for programs ---------------------------------------------------------------------------------------

    def admit(self, waiting: Waiting) -> LaunchPlan | None:
        """Returns the plan with its session, which is recorded; None when the run has to wait here. Raises OSError."""
        order, plan = waiting
        assert plan.session is not None
        with self._lock:
            if self._why_waits(plan):
                self._waiting[order.run_id] = waiting
                self.look()
                return None
            given = self._given(order.run_id, plan)
            self._active[order.run_id] = given
            url = given.remote or self._warm[plan.session.master].url
        try:
            self.shelf.put_session(given)
        except OSError:
            self.ended(order.run_id)
            raise
        return connect_server.completed(plan, connect_server.remote_of(url, given.user_id, given.session_id))

    def knows(self, run_id: str) -> bool:
        """Returns whether a run waits here."""
        return run_id in self._waiting

    def ready(self) -> list[Waiting]:
        """Removes the runs that may start now, and returns them in the order they came."""
        with self._lock:
            room = self.settings.runs - len(self._active)
            found = [each for each in self._waiting.values() if not self._why_server_waits(each.plan)][: max(0, room)]
            for each in found:
                del self._waiting[each.order.run_id]
                self._reasons.pop(each.order.run_id, None)
            return found

    def drop(self, run_ids: Iterable[str]) -> list[Waiting]:
        """Removes the waiting runs among these, and returns them."""
        with self._lock:
            return [self._waiting.pop(run_id) for run_id in run_ids if run_id in self._waiting]

    def drop_all(self) -> list[Waiting]:
        """Removes all waiting runs, and returns them."""
        return self.drop(list(self._waiting))

    def reasons(self) -> list[tuple[str, str]]:
        """Returns what runs wait for, where that is not in their records yet."""
        with self._lock:
            new = []
            for run_id, each in self._waiting.items():
                why = self._why_waits(each.plan)
                if why and self._reasons.get(run_id) != why:
                    self._reasons[run_id] = why
                    new.append((run_id, why))
            return new

    def take_up(self, run_id: str) -> None:
        """Takes over a run of an earlier monitor, which may still have its session."""
        given = self.shelf.session(run_id)
        if given is not None:
            with self._lock:
                self._active[run_id] = given
            self.look()

    def ended(self, run_id: str) -> None:
        """Releases the session of a run that has ended, or never began."""
        with self._lock:
            self._server_losses.pop(run_id, None)
            given = self._active.pop(run_id, None)
            if given is not None:
                self._to_release(given)
        if given is not None:
            self.look()
            self.wake()

    def sweep(self, monitor: str) -> None:
        """Releases the recorded sessions of a monitor's runs that are not supervised any more."""
        for given in self.shelf.all_sessions():
            with self._lock:
                if given.monitor == monitor and given.run_id not in self._active:
                    self._to_release(given)
        if self._releases:
            self.look()

    def server_loss(self, run_id: str) -> str:
        """Returns why the server of a run is gone, so that the run can only end; "" where it is there."""
        return self._server_losses.get(run_id, "")

    def expect(self, masters: Iterable[str]) -> None:
        """Starts servers with these masters before the first run needs one ("": the ordinary one).

        An external server, whose master is its address, is only checked.
        """
        all_masters = {master or self.settings.master for master in masters}
        elsewhere = frozenset(filter(connect_server.is_elsewhere, all_masters))
        expected = frozenset(all_masters - elsewhere), elsewhere
        if expected != (self._expected, self._expected_elsewhere):
            self._expected, self._expected_elsewhere = expected
            self.look()

    # -- for the servers' thread ----------------------------------------------------------------------------

    def wanted(self) -> set[str]:
        """Returns the masters that runs wait for, or are expected to."""
        with self._lock:
            sessions = [each.plan.session for each in self._waiting.values()]
            return {it.master for it in sessions if it is not None and not it.remote} | self._expected

    def wanted_elsewhere(self) -> dict[str, int]:
        """Returns the addresses of external servers that are needed, and how many runs work in each."""
        with self._lock:
            sessions = [each.plan.session for each in self._waiting.values()]
            waited_for = [it.remote for it in sessions if it is not None and it.remote]
            left = [each.given.remote for each in self._releases if each.given.remote]
            wanted = dict.fromkeys([*self._expected_elsewhere, *waited_for, *left], 0)
            for given in self._active.values():
                if given.remote:
                    wanted[given.remote] = wanted.get(given.remote, 0) + 1
            return wanted

    def is_there(self, url: str) -> None:
        """Notes that an external server answers: runs may be sent there, and sessions there are released."""
        with self._lock:
            if self._elsewhere.get(url) == "":
                return
            self._elsewhere[url] = ""
            now = time.monotonic()
            self._releases = [each._replace(at=now) if each.given.remote == url else each for each in self._releases]
        self.wake()

    def is_away(self, url: str, why: str, *, is_lost: bool) -> None:
        """Notes that an external server does not answer, ``is_lost``: for so long that its runs are to end."""
        with self._lock:
            self._elsewhere[url] = why
            for run_id, given in self._active.items():
                if is_lost and given.remote == url:
                    self._server_losses[run_id] = f"{connect_server.shown(url)} does not answer: {why}"
        self.wake()

    def is_unknown(self, url: str) -> None:
        """Notes that an external server is not checked any more."""
        with self._lock:
            self._elsewhere.pop(url, None)

    def uses(self, server_id: str) -> int:
        """Returns how many runs work in a server."""
        with self._lock:
            return sum(given.server_id == server_id for given in self._active.values())

    def has(self, master: str) -> bool:
        """Returns whether runs are sent to a server with this master."""
        return master in self._warm

    def is_warm(self, server: Server) -> None:
        """Notes that runs may be sent to a server from now on."""
        with self._lock:
            self._warm[server.master] = server
            self._troubles.pop(server.master, None)
        self.wake()

    def is_over(self, server: Server, why: str) -> None:
        """Notes that a server has ended: so have its sessions, and the runs that work in them are to end."""
        with self._lock:
            current = self._warm.get(server.master)
            if current is not None and current.server_id == server.server_id:
                del self._warm[server.master]
            self._troubles[server.master] = why
            for run_id, given in self._active.items():
                if given.server_id == server.server_id:
                    self._server_losses[run_id] = why
            self._releases = [each for each in self._releases if each.given.server_id != server.server_id]
        for given in self.shelf.all_sessions():
            if given.server_id == server.server_id and given.run_id not in self._active:
                self.shelf.drop_session(given.run_id)
        self.wake()

    def to_release(self, now: float) -> tuple[list[Release], float]:
        """Returns the sessions to be released now, and when the next is (0: none waits).

        Those on an external server that is away wait for it, until they are given up.
        """
        with self._lock:
            due = [each for each in self._releases if each.at <= now and not self._is_away(each)]
            self._releases = [each for each in self._releases if each not in due]
            given_up = [each for each in self._releases if each.until <= now]
            self._releases = [each for each in self._releases if each.until > now]
            next_at = min((each.at for each in self._releases if not self._is_away(each)), default=0.0)
        for release in given_up:
            self._give_up(release, self._elsewhere.get(release.given.remote, ""))
        return due, next_at

    def released(self, release: Release, error: str) -> None:
        """Records the result of a release: it is sent once more, tried again later, or done."""
        now = time.monotonic()
        if error and now < release.until:
            again = release._replace(at=now + _TRY_AGAIN_S)
        elif not error and not release.is_last:
            again = release._replace(at=now + _AGAIN_S, is_last=True)
        else:
            self._give_up(release, error)
            return
        with self._lock:
            self._releases.append(again)

    def _give_up(self, release: Release, error: str) -> None:
        if error:
            shown = connect_server.redacted(error, release.given.remote)
            log.warning("session not released", run=release.given.run_id, error=shown)
        self.shelf.drop_session(release.given.run_id)

    # -- under the lock -------------------------------------------------------------------------------------

    def _why_waits(self, plan: LaunchPlan) -> str:
        if len(self._active) >= self.settings.runs:
            return f"{len(self._active)} warm runs are under way, as many as connect.runs allows"
        return self._why_server_waits(plan)

    def _why_server_waits(self, plan: LaunchPlan) -> str:
        session = plan.session
        assert session is not None
        if session.remote:
            trouble = self._elsewhere.get(session.remote)
            if trouble is None:
                return f"{connect_server.shown(session.remote)} does not answer yet"
            return trouble and f"{connect_server.shown(session.remote)} does not answer: {trouble}"
        if session.master in self._warm:
            return ""
        trouble = self._troubles.get(session.master)
        return "its Spark Connect server does not answer yet" + (f"; the last one: {trouble}" if trouble else "")

    def _is_away(self, release: Release) -> bool:
        return bool(self._elsewhere.get(release.given.remote))

    def _given(self, run_id: str, plan: LaunchPlan) -> Given:
        session = plan.session
        assert session is not None
        user = f"trigmon-{self._q_mgr_name}"
        return Given(
            run_id=run_id,
            monitor=self.monitor,
            user_id=connect_server.user_of(session.remote, user) if session.remote else user,
            session_id=connect_server.session_of(self._q_mgr_name, run_id),
            server_id="" if session.remote else self._warm[session.master].server_id,
            remote=session.remote,
        )

    def _to_release(self, given: Given) -> None:
        now = time.monotonic()
        if not any(each.given.run_id == given.run_id for each in self._releases):
            self._releases.append(Release(given, now, now + _GIVE_UP_S))

"""The supervisor process of a run on a standalone cluster: submits the driver, follows it, and exits with its status.

``python -m trigmon.launch.spark.cluster.rest_supervisor --run RUN --rest URL ... -- SPARK-SUBMIT'S ARGUMENTS``. So the
keeper and the ledger handle a driver on another machine like any other program: SIGTERM kills it on the cluster, the
exit status is the driver's (0 for FINISHED), and the driver's last output is at the end of standard error.

A supervisor that was killed leaves its driver running. The next one of the same run gets ``--driver``, the id that the
first one recorded. Where it recorded only that it asked for a driver, the next one gets the time of that by ``--asked``
and looks for the driver among those that the master lists, by the run's id in the command line, before it submits
another. ``--kill``: only kills the driver, within ``--patience`` seconds.

Standard library only: a launch waits while it starts.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from trigmon.launch.spark import log_lines, web
from trigmon.launch.spark.cluster import driver_journal, rest_api

FAILED, UNKNOWN, ENDED = 1, 75, 143
"""Exit statuses: the driver failed, its outcome is not known, it was killed because this process was."""

PATIENCE_S: Final = 600.0
"""How long no master may answer before the outcome of the driver counts as unknown."""

_ENDS = (signal.SIGTERM, signal.SIGINT)
_FIRST_PAUSE_S, _LONGEST_PAUSE_S, _KILL_PAUSE_S = 0.2, 2.0, 0.3
_FORGOTTEN_S = 10.0
_SKEW_MS = 600_000
# A master that had stopped may still execute a request for so long: only later it is certain that there is no driver.
_SETTLED_MS = 15_000
_TAILS = (("stderr", 4096), ("stdout", 2048))
TOKEN = "spark-rest-token"  # noqa: S105 - its name
"""The name of the secret for the master's REST server, which a definition may have."""


class Over(Exception):  # noqa: N818 - ends the process, no error
    """Ends the supervisor with this exit status; ``last`` is the last line of the journal ("" for none)."""

    def __init__(self, status: int, last: str = "") -> None:
        super().__init__(last)
        self.status = status
        self.last = last


class Supervisor:
    """The supervisor of one run's driver."""

    def __init__(
        self, master: rest_api.Master, run_id: str, say: Callable[[str, str], None], patience_s: float
    ) -> None:
        self._master = master
        self._run_id = run_id
        self._say = say
        self._patience_s = patience_s
        self._is_ended = False
        self._record = driver_journal.DriverRecord()
        self._worker_id = ""

    # -- submission -----------------------------------------------------------------------------------------

    def submit(self, arguments: list[str], properties: dict[str, str], environment: dict[str, str]) -> str:
        """Submits a driver and returns its id; tries again while no master is reached. Raises Over."""
        until = time.monotonic() + self._patience_s
        pause_s = _FIRST_PAUSE_S
        while True:
            asked_ms = time.time_ns() // 1_000_000
            self._say(driver_journal.ASKING, f"{self._master.address} {asked_ms}")
            try:
                driver = self._master.create(arguments, properties, environment)
            except rest_api.RefusedError as error:
                self._say(driver_journal.NOT_SUBMITTED, str(error))
                raise Over(FAILED) from None
            except web.NotReachedError as error:
                self._say(driver_journal.NOT_SUBMITTED, str(error))
                if self._pause(pause_s) or time.monotonic() >= until:
                    raise Over(ENDED if self._is_ended else FAILED) from None
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
            except web.NoAnswerError as error:
                _note(f"{error}: whether a driver was submitted is not known yet")
                found = self.find(asked_ms)
                if found:
                    return found
                self._say(driver_journal.NOT_SUBMITTED, "the master has no driver of this run")
            else:
                self._say(driver_journal.SUBMITTED, driver)
                return driver

    def find(self, asked_ms: int) -> str:
        """Returns the driver of this run that was requested at that time; "": none was submitted.

        Raises Over when that cannot be known: a driver whose log cannot be read may be the one.
        """
        until = time.monotonic() + self._patience_s
        why, others = "", set[str]()
        while True:
            try:
                listed = self._master.drivers(asked_ms - _SKEW_MS)
                open_ = [pair for pair in listed if pair[0] not in others]
                for driver, worker_id in open_:
                    try:
                        head = self._master.log(driver, worker_id, "stderr")
                    except OSError as error:
                        why = str(error)
                        continue
                    if rest_api.of_run(head.splitlines(), self._run_id):
                        self._say(driver_journal.SUBMITTED, driver)
                        return driver
                    if "Launch Command:" in head:
                        others.add(driver)
                is_settled = time.time_ns() // 1_000_000 >= asked_ms + _SETTLED_MS
                if all(driver in others for driver, _ in listed):
                    if is_settled:
                        return ""
                    why = why or "the master has none, and may be about to"
                why = why or f"no log yet of {', '.join(driver for driver, _ in open_)}"
            except OSError as error:
                why = str(error)
            if self._pause(1.0) or time.monotonic() >= until:
                raise Over(UNKNOWN, f"{driver_journal.UNKNOWN} whether a driver was submitted: {why}")

    # -- following ------------------------------------------------------------------------------------------

    def follow(self, driver: str) -> None:
        """Waits for the end of a driver. Always raises Over."""
        pause_s, lost_at, forgotten_at = _FIRST_PAUSE_S, 0.0, 0.0
        while True:
            try:
                status = self._master.status(driver)
            except (OSError, rest_api.RefusedError) as error:
                lost_at = lost_at or time.monotonic() + self._patience_s
                if time.monotonic() >= lost_at:
                    why = f"the master has not answered for {self._patience_s:g} s ({error}); {driver} may run on"
                    raise Over(UNKNOWN, f"{driver_journal.UNKNOWN} {why}") from None
            else:
                lost_at = 0.0
                forgotten_at = 0.0 if status.state else forgotten_at or time.monotonic() + self._forgotten_s()
                if forgotten_at and time.monotonic() >= forgotten_at:
                    why = f"the master does not know {driver}: it was restarted without recovery, or forgot it"
                    raise Over(UNKNOWN, f"{driver_journal.UNKNOWN} {why}")
                if self._take_status(driver, status):
                    pause_s = _FIRST_PAUSE_S
            if self._pause(pause_s):
                self.kill(driver)
            pause_s = min(pause_s * 1.3, _LONGEST_PAUSE_S)

    def _forgotten_s(self) -> float:
        return min(_FORGOTTEN_S, self._patience_s)

    def _take_status(self, driver: str, status: rest_api.Status) -> bool:
        """Writes a changed status to the journal; returns whether it changed. Raises Over at the driver's end."""
        self._worker_id = status.worker_id or self._worker_id
        if status.state in rest_api.ENDED:
            self._end(driver, status)
        is_new = False
        state = f"{status.state} {status.worker}".strip()
        if status.state and state != self._record.state:
            self._record.state = state
            self._say(driver_journal.STATE, state)
            is_new = True
        if status.state == "RUNNING" and not (self._record.application and self._record.ui):
            self._read_log(driver)
        return is_new

    def _read_log(self, driver: str) -> None:
        """Writes the application's id and the address of its web server to the journal, once its log has them."""
        try:
            text = self._master.log(driver, self._worker_id, "stderr")
        except OSError:
            return
        application, ui = log_lines.application_in(text), log_lines.ui_in(text)
        if application and not self._record.application:
            self._record.application = application
            self._say(driver_journal.APPLICATION, application)
        if ui and not self._record.ui:
            self._record.ui = ui
            self._say(driver_journal.UI, ui)

    def _end(self, driver: str, status: rest_api.Status) -> None:
        if status.state != rest_api.FINISHED or self._is_ended:
            self._copy_log(driver)
        outcome = f"{status.state} {status.message}".strip()
        _note(f"{driver} ended: {outcome}")
        is_killed = self._is_ended and status.state == "KILLED"
        raise Over(0 if status.state == rest_api.FINISHED else ENDED if is_killed else FAILED, outcome)

    def _copy_log(self, driver: str) -> None:
        """Copies the end of the driver's output, from its worker's page, to standard error."""
        for name, length in _TAILS:
            try:
                text = self._master.log(driver, self._worker_id, name, length)
            except OSError as error:
                _note(f"the driver's {name} could not be read: {error}")
                continue
            if text:
                sys.stderr.write(f"--- the end of {driver}'s {name} ---\n{text.rstrip()}\n")

    # -- killing --------------------------------------------------------------------------------------------

    def kill(self, driver: str, within_s: float = 0.0) -> None:
        """Kills a driver and waits for its end, so many seconds (0: as long as it takes). Always raises Over."""
        self._is_ended = True
        until = time.monotonic() + within_s if within_s else 0.0
        why = ""
        while True:
            try:
                self._master.kill(driver)
                status = self._master.status(driver)
                why = f"it is {status.state}"
                self._worker_id = status.worker_id or self._worker_id
                if status.state in rest_api.ENDED:
                    self._end(driver, status)
                if not status.state:
                    raise Over(UNKNOWN, f"{driver_journal.UNKNOWN} the master does not know {driver}")
            except (OSError, rest_api.RefusedError) as error:
                why = str(error)
            if until and time.monotonic() >= until:
                raise Over(
                    UNKNOWN,
                    f"{driver_journal.UNKNOWN} {driver} was not killed in {within_s:g} s, and may run on: {why}",
                )
            time.sleep(_KILL_PAUSE_S)

    def _pause(self, pause_s: float) -> bool:
        """Waits, and returns whether this process has got SIGTERM or SIGINT, now or before."""
        if signal.sigtimedwait(_ENDS, pause_s) is not None:
            self._is_ended = True
        return self._is_ended


def say(word: str, about: str) -> None:
    """Writes a line of the journal; a submission is on the disk before anything follows from it."""
    now = time.time_ns() // 1_000_000
    at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now // 1000)) + f".{now % 1000:03}Z"
    sys.stdout.write(f"{at} {word} {' '.join(about.split())}\n")
    sys.stdout.flush()
    if word in (driver_journal.ASKING, driver_journal.SUBMITTED):
        with suppress(OSError):  # a pipe or a terminal
            os.fsync(sys.stdout.fileno())


def _note(text: str) -> None:
    sys.stderr.write(f"trigmon: {text}\n")
    sys.stderr.flush()


def token() -> str:
    """Returns the secret for the REST server, "" where the run has none."""
    directory = os.environ.get("CREDENTIALS_DIRECTORY")
    path = Path(directory, TOKEN) if directory else None
    return path.read_text().strip() if path is not None and path.is_file() else ""


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="trigmon.launch.spark.cluster.rest_supervisor", allow_abbrev=False)
    parser.add_argument("--run", required=True)
    parser.add_argument("--rest", action="append", required=True)
    parser.add_argument("--page", action="append", default=[])
    parser.add_argument("--property", action="append", default=[])
    parser.add_argument("--variable", action="append", default=[])
    parser.add_argument("--patience", type=float, default=PATIENCE_S)
    parser.add_argument("--driver", default="")
    parser.add_argument("--asked", type=int, default=0)
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("arguments", nargs="*")
    return parser


def supervise(given: argparse.Namespace) -> None:
    """Submits or finds the driver, and follows or kills it. Raises Over."""
    one = Supervisor(rest_api.Master(given.rest, given.page, token()), given.run, say, given.patience)
    driver = given.driver or (one.find(given.asked) if given.asked else "")
    if given.kill:
        if not driver:
            raise Over(ENDED, "KILLED before it was submitted")
        one.kill(driver, given.patience)
    if not driver:
        properties = dict(pair.split("=", 1) for pair in given.property)
        variables = {name: os.environ[name] for name in given.variable if name in os.environ}
        driver = one.submit(given.arguments, {**properties, rest_api.RUN: given.run}, variables)
    one.follow(driver)


def main() -> int:
    """Runs the supervisor and returns its exit status."""
    # Signals are blocked and waited for: none can interrupt between a request and its line in the journal.
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS)
    try:
        supervise(_arguments().parse_args())
    except Over as over:
        if over.last:
            say(driver_journal.OVER, over.last)
            if over.status == UNKNOWN:
                _note(over.last)
        return over.status
    return FAILED


if __name__ == "__main__":
    sys.exit(main())

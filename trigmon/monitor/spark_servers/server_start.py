"""Start of a Spark Connect server by the monitor's keeper, with growing pauses behind failed starts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from trigmon.launch.keeper_client import Keeper, KeeperGone
from trigmon.launch.launch_plan import LaunchError, Session
from trigmon.launch.spark.warm import connect_server
from trigmon.log import logger
from trigmon.monitor.spark_servers.kept_server import KeptServer
from trigmon.monitor.spark_servers.session_admission import SessionAdmission

log = logger()
GRACE_S, LEASE_S = 10.0, 90.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 60.0


class ServerStarter:
    """Starts servers. ``keeper`` calls its argument with the monitor's keeper; it raises KeeperGone and OSError."""

    def __init__(
        self,
        warm: SessionAdmission,
        data_directory: Path,
        address: str,
        keeper: Callable[[Callable[[Keeper], None]], None],
        environment: Callable[[Mapping[str, str]], dict[str, str]],
    ) -> None:
        self._warm = warm
        self._data_directory = data_directory
        self._address = address
        self._keeper = keeper
        self._environment = environment
        self._start_at: dict[str, float] = {}
        self._pauses: dict[str, float] = {}

    def start(self, master: str, now: float) -> KeptServer | None:
        """Starts a server with this master; None in the pause behind the last start, and where it cannot be started."""
        if now < self._start_at.get(master, 0.0):
            return None
        self._start_at[master] = now + _FIRST_PAUSE_S
        shelf = self._warm.shelf
        server = connect_server.made(self._warm.monitor, Session(master=master), self._warm.settings)
        directory = shelf.directory(server.server_id)
        try:
            plan = connect_server.planned(server, self._data_directory, self._address)
            shelf.put_server(server)
            environment = self._environment(plan.environment)
            limits = {"time_limit_s": 0.0, "grace_s": GRACE_S, "lease_s": LEASE_S}
            self._keeper(lambda keeper: keeper.start(server.server_id, plan, environment, directory, **limits))
        except (LaunchError, OSError, KeeperGone) as error:
            self.failed(master, now)
            log.error("no Spark Connect server can be started", master=master, error=str(error))
            self._warm.is_over(server, str(error))
            self._warm.lost_servers.note(master, str(error))
            shelf.drop_server(server.server_id)
            return None
        log.info("Spark Connect server started", server=server.server_id, master=master, port=server.port)
        return KeptServer(server, directory, is_found=False)

    def failed(self, master: str, now: float) -> None:
        """Sets the pause behind a start that failed, twice as long as the last."""
        pause_s = self._pauses.get(master, _FIRST_PAUSE_S)
        self._pauses[master] = min(2 * pause_s, _LONGEST_PAUSE_S)
        self._start_at[master] = now + pause_s

    def succeeded(self, master: str) -> None:
        """Ends the growth of pauses: a server with this master answers."""
        self._pauses.pop(master, None)

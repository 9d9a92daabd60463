"""SPKSTART(REST): plans the supervisor of a driver that runs on a worker of a standalone cluster.

The master's addresses: SPKMASTER(spark://HOST:7077) means its REST server http://HOST:6066 and its page
http://HOST:8080, or the ports of spark.master.rest.port and spark.master.ui.port in SPKCONF. Behind a proxy of the
user's own, SPKMASTER is the proxy's http:// or https:// address, and the driver's master is spark.master in SPKCONF
(default: spark://HOST:7077). Several masters are separated by commas, as in Spark.

The program's file, and all it needs, must be where the workers find them: nothing is sent.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from trigmon import paths
from trigmon.keeper import run_directory
from trigmon.launch import arguments
from trigmon.launch.launch_plan import STDERR, STDOUT, LaunchError, LaunchPlan, Lead, Order
from trigmon.launch.permissions import Grants
from trigmon.launch.spark.cluster import driver_journal
from trigmon.launch.spark.cluster import rest_api as rest
from trigmon.launch.spark.cold import command
from trigmon.mq.enums import SparkDeployMode
from trigmon.rules.runs import spark_ports

KILL_S = 30
"""Seconds to kill a driver whose supervisor was killed."""

_MASTER_PORT, _REST_PORT, _PAGE_PORT = "7077", "6066", "8080"


class Cluster(msgspec.Struct, frozen=True):
    """The addresses of a cluster's REST servers and pages, and the master for its drivers."""

    rest: list[str]
    pages: list[str]
    master: str


def cluster_of(master: str, settings: dict[str, str]) -> Cluster:
    """Returns the cluster that SPKMASTER and SPKCONF name. Pure; raises LaunchError."""
    rest_port, page_port = settings.get("spark.master.rest.port", ""), settings.get("spark.master.ui.port", "")
    if master.startswith("spark://"):
        hosts = [_host(f"spark://{each}") for each in master.removeprefix("spark://").split(",")]
        rest = [f"http://{host}:{rest_port or _REST_PORT}" for host in hosts]
        own = master
    else:
        rest = [each.strip() for each in master.split(",")]
        hosts = [_host(each) for each in rest]
        own = settings.get("spark.master") or f"spark://{','.join(f'{host}:{_MASTER_PORT}' for host in hosts)}"
    return Cluster(rest, [f"http://{host}:{page_port or _PAGE_PORT}" for host in hosts], own)


def _host(url: str) -> str:
    try:
        host = urlsplit(url).hostname
    except ValueError:
        host = None
    if not host:
        raise LaunchError(f"SPKMASTER must name a cluster's master, as spark://HOST:7077, not {url!r}")
    return f"[{host}]" if ":" in host else host


def supervised(order: Order) -> tuple[list[str], list[str]]:
    """Returns the supervisor's options, and the arguments of SparkSubmit in the driver. Pure; raises LaunchError."""
    settings = command.settings(order.process)
    cluster = cluster_of(order.process.spark_master, settings)
    process = replace(order.process, spark_master=cluster.master, spark_deploy_mode=SparkDeployMode.CLIENT)
    there = command.submitted(replace(order, process=process))
    options = ["--run", order.run_id]
    for address in cluster.rest:
        options += ["--rest", address]
    for address in cluster.pages:
        options += ["--page", address]
    for key, value in _properties(order, settings, cluster.master).items():
        options += ["--property", f"{key}={value}"]
    return options, there


def _properties(order: Order, settings: dict[str, str], master: str) -> dict[str, str]:
    """Returns the settings that the worker needs to start the driver's JVM; SparkSubmit's arguments have the rest."""
    process = order.process
    # The worker's wrapper of the driver has a port of its own, and authenticates only if its own JVM is configured so.
    properties = {
        key: value
        for key, value in settings.items()
        if key.startswith("spark.driver.") or key == spark_ports.AUTHENTICATE
    }
    name = arguments.filled([process.spark_name], order)[0] if process.spark_name else Path(command.program(order)).name
    properties |= {"spark.app.name": name, "spark.master": master}
    if process.spark_driver_memory:
        properties["spark.driver.memory"] = process.spark_driver_memory
    if process.spark_driver_cores:
        properties["spark.driver.cores"] = str(process.spark_driver_cores)
    return properties


class SparkRestLauncher:
    """Plans the supervisors of drivers; ``grants`` is what the administrator lets a definition ask for."""

    errors = (STDERR,)

    def __init__(self, grants: Grants = Grants()) -> None:  # noqa: B008 - it never changes
        self._grants = grants

    def plan(self, order: Order) -> LaunchPlan:
        """See :class:`~trigmon.launch.launch_plan.Launcher`. Limits are the cluster's own."""
        options, there = supervised(order)
        environment = arguments.environment(order) | arguments.variables(order.process)
        if not order.address:  # a name means something on this machine only
            environment["TRIGMON_QMGR"] = f"unix:{paths.find_socket(order.q_mgr_name)}"
        for name in environment:
            options += ["--variable", name]
        plan = LaunchPlan(argv=_argv(options, there), environment=environment)
        return self._grants.completed(plan, order.process)

    def record_fields(self, order: Order, directory: Path) -> dict[str, str]:
        """Returns driver and application, and the driver's outcome where it differs from the supervisor's status."""
        known = read(directory)
        fields = {"driver_id": known.driver, "application_id": known.application}
        if known.over.startswith(driver_journal.UNKNOWN):
            fields["unknown"] = known.over.removeprefix(driver_journal.UNKNOWN).strip()
        elif known.may_run:
            fields["unknown"] = f"its supervisor was killed, and {known.driver or 'its driver'} may run on"
        elif known.over:
            fields["status"] = "0" if known.over.startswith(rest.FINISHED) else "1"
        return {name: value for name, value in fields.items() if value}

    def lead(self, order: Order, directory: Path, pid: int) -> Lead | None:
        """See :class:`~trigmon.launch.launch_plan.Launcher`."""
        known = read(directory)
        return Lead(known.application, known.ui, driver_id=known.driver)

    def again(self, order: Order, directory: Path, *, ends: bool) -> LaunchPlan | None:
        """Plans a supervisor for the driver that the first one left (:class:`~trigmon.launch.launch_plan.Launcher`)."""
        known = read(directory)
        if not known.may_run:
            return None
        plan = self.plan(order)
        at = plan.argv.index("--")
        more = ["--driver", known.driver] if known.driver else ["--asked", str(known.asked_ms)]
        if ends:
            more += ["--kill", "--patience", str(KILL_S)]
        return replace(plan, argv=[*plan.argv[:at], *more, *plan.argv[at:]])

    def tend(self) -> None:
        """Returns at once: there is nothing to do."""


def read(directory: Path) -> driver_journal.DriverRecord:
    """Returns the driver's record in the journals of a run's supervisors, the first one first."""
    text = ""
    for each in run_directory.all_of(directory):
        with suppress(OSError), (each / STDOUT).open("rb") as file:
            text += file.read(driver_journal.LARGEST).decode(errors="replace")
    return driver_journal.DriverRecord(text)


def _argv(options: list[str], there: list[str]) -> list[str]:
    return [sys.executable, "-m", "trigmon.launch.spark.cluster.rest_supervisor", *options, "--", *there]

"""SPKSTART(SUBMIT): a job is started cold, by spark-submit, and what that needs on this machine."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from trigmon.launch import arguments
from trigmon.launch.launch_plan import STDERR, STDOUT, LaunchError, LaunchPlan, Lead, Order
from trigmon.launch.permissions import Grants
from trigmon.launch.spark import driver_status, log_lines, secret, sockets
from trigmon.launch.spark.cold import class_archive, command, java_command, make_archive, web_page, with_keytab
from trigmon.launch.spark.cold import spark_home as compiled
from trigmon.launch.spark.cold.class_archive import Archives
from trigmon.launch.spark.cold.java import Java, find_java
from trigmon.launch.users import account
from trigmon.log import logger
from trigmon.mq.attributes import Process
from trigmon.mq.enums import SparkDeployMode, SparkShort
from trigmon.rules.runs import spark_ports

log = logger()

_FIRST_BYTES = 1 << 18
_SPECIAL = re.compile(r"[*?{\[%#]")
"""What is more in a URL, or in Spark's names of many files, than in a file's name."""


def spark_home(environ: Mapping[str, str]) -> Path:
    """SPARK_HOME when it has a spark-submit, else the pyspark of this Python. Raises LaunchError."""
    given = environ.get("SPARK_HOME")
    if given and (Path(given) / "bin" / "spark-submit").is_file():
        return Path(given)
    found = importlib.util.find_spec("pyspark")  # located, not imported: a monitor need not pay for it
    if found is None or found.origin is None:
        raise LaunchError(
            "no Spark was found: SPARK_HOME has no bin/spark-submit, and pyspark is not installed; "
            "pip install 'trigmon[spark]'"
        )
    return Path(found.origin).parent


class SparkSubmitLauncher:
    """Plans what is started cold: by the java command itself, and by spark-submit where that has more to do.

    ``data_directory`` holds what launching writes once below ``java``: the bundled Java's launcher, and the archives
    of classes. ``makes_archives`` says whether one is made where none fits. ``grants`` is what the administrator lets
    a definition ask for. ``maker`` is the process that makes one, while it is remembered.
    """

    # SparkSubmit copies both streams of the Python it runs to its own stdout, so a traceback stands there.
    errors = (STDERR, STDOUT)

    def __init__(
        self,
        data_directory: Path,
        grants: Grants = Grants(),  # noqa: B008 - it never changes
        *,
        makes_archives: bool = True,
    ) -> None:
        self.archives = Archives(data_directory / "java")
        self._page = data_directory / "spark" / "page.properties"
        self._sockets = data_directory / "spark" / "s"
        self._grants = grants
        self._makes_archives = makes_archives
        self._wanted: tuple[Path, Java] | None = None
        self._told_open: set[tuple[str, str]] = set()
        self.maker: subprocess.Popen[bytes] | None = None

    def plan(self, order: Order) -> LaunchPlan:
        """See :class:`~trigmon.launch.launch_plan.Launcher`."""
        process = order.process
        check_program(order)
        variables = command.variables(process)
        environ = os.environ | variables
        home = spark_home(environ)
        master = _master(process, home, environ)
        is_local = process.spark_deploy_mode != SparkDeployMode.CLUSTER and spark_ports.is_local(master)
        said = command.submitted(_with_jars_in_place(order) if is_local else order, process.spark_keytab)
        java = find_java(self.archives.directory, environ)
        if is_of_another(process):
            java = replace(java, home=java.image_home, image=Path())
        spark = {"SPARK_HOME": str(home), "JAVA_HOME": str(java.home)}
        for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
            spark[name] = environ.get(name, sys.executable)
        program, more = self._program(home, java, order, environ | spark)
        closing, local = _closing(process, master) if is_local else ([], {})
        self._tell_what_is_open(process)
        closing += self._private_sockets(process) if is_local else []
        argv = [*program, *closing, *self._closed_page(process, home, environ), *said]
        if process.spark_keytab:
            argv = [sys.executable, "-I", with_keytab.__file__, *argv]
        plan = LaunchPlan(
            argv=argv,
            environment=arguments.environment(order) | local | variables | spark | more,
            working_directory=process.working_directory,
        )
        return self._grants.completed(plan, _with_keytab(process))

    def _program(
        self, home: Path, java: Java, order: Order, environ: Mapping[str, str]
    ) -> tuple[list[str], dict[str, str]]:
        """What is executed before the words that spark-submit is told, and the variables that go with it."""
        process = order.process
        settings = command.settings(process)
        given = {**environ, **self._grants.variables()}  # the administrator has every program given those
        if java_command.why_not(home, process, settings, given):
            if is_of_another(process) and not java.has_vector_module:
                raise LaunchError(
                    f"RUNAS({process.run_as}): spark-submit itself needs a Java with jdk.incubator.vector, which "
                    f"{java.home} lacks; install one, or name it as JAVA_HOME in SPKENV"
                )
            is_short = process.spark_short == SparkShort.YES
            return [str(home / "bin" / "spark-submit")], java_command.short_variables(
                settings, given
            ) if is_short else {}
        key = class_archive.key(home, java)
        file = None if is_of_another(process) else self.archives.usable(key)
        if file is None and self._makes_archives and not is_of_another(process):
            self._wanted = home, java
        using = class_archive.using(file, java) if file else ()
        argv = [*java_command.command(home, java, process, settings, using), *java_command.ports(settings)]
        return argv, java_command.environment(home) | self._compiled(home, order, settings, given)

    def _compiled(
        self, home: Path, order: Order, settings: Mapping[str, str], given: Mapping[str, str]
    ) -> dict[str, str]:
        """Another SPARK_HOME for a PySpark job, where its Pythons find PySpark compiled; nothing where that cannot be.

        YARN is sent the zip itself.
        """
        is_python = command.program(order).endswith(".py") and not order.process.spark_master.startswith("yarn")
        if not is_python or is_of_another(order.process) or not compiled.is_of_use(home, settings, given):
            return {}
        try:
            return {"SPARK_HOME": str(compiled.linked(self.archives.directory, home))}
        except OSError as error:
            log.warning("no links to a compiled PySpark can be made", error=str(error))
            return {}

    def _closed_page(self, process: Process, home: Path, environ: Mapping[str, str]) -> list[str]:
        """The words that close the driver's page, where it is here and its definition names no filter of its own.

        The file is the monitor's user's: a job of another user (RUNAS) has no page, unless its definition wants one.
        """
        settings = command.settings(process)
        is_elsewhere = process.spark_deploy_mode == SparkDeployMode.CLUSTER or process.spark_master.startswith("yarn")
        said = settings.get("spark.ui.enabled", "").lower()
        if is_elsewhere or said == "false" or "spark.ui.filters" in settings:
            return []
        if is_of_another(process):
            return [] if said else ["--conf", "spark.ui.enabled=false"]
        try:
            web_page.kept(self._page)
        except OSError as error:
            raise LaunchError(f"the driver's page cannot be closed to others: {error}") from None
        return web_page.options(self._page, home, environ)

    def _private_sockets(self, process: Process) -> list[str]:
        """The words that keep the driver's Pythons off the ports; not for another user (RUNAS), as the page's."""
        if is_of_another(process):
            return []
        try:
            return sockets.options(self._sockets, command.settings(process))
        except OSError as error:
            raise LaunchError(f"no directory for the sockets of Python can be made: {error}") from None

    def _tell_what_is_open(self, process: Process) -> None:
        """A definition may open its driver to others, but not unseen: each is told once."""
        said = process.name, " ".join(spark_ports.open_to_others(process))
        if said[1] and said not in self._told_open:
            self._told_open.add(said)
            log.warning("strangers may speak to a Spark driver", process=said[0], by=said[1])

    def tend(self) -> None:
        """Begins to make the archive that a run would have liked, once that run has ended; one at a time.

        Also removes the sockets that killed runs left behind.
        """
        sockets.remove_stale(self._sockets)
        if self.maker is not None and self.maker.poll() is None:
            return
        wanted, self.maker, self._wanted = self._wanted, None, None
        if wanted is None:
            return
        try:
            if self.archives.is_wanted(class_archive.key(*wanted)):
                self.maker = make_archive.begin(self.archives, *wanted)
        except OSError as error:
            log.warning("no archive of classes can be made", directory=str(self.archives.directory), error=str(error))

    def told(self, order: Order, directory: Path) -> dict[str, str]:
        """The id of the Spark application, where the cluster gave it one and Spark's log says it."""
        found = log_lines.application_in(_log(directory))
        return {"application_id": found} if found else {}

    def lead(self, order: Order, directory: Path, pid: int) -> Lead | None:
        """See :class:`~trigmon.launch.launch_plan.Launcher`. In client mode the driver is the run's own process."""
        said = _log(directory)
        key = "" if is_of_another(order.process) else web_page.key_in(self._page)
        return Lead(log_lines.application_in(said), driver_status.of_local_driver(said, pid), page_key=key)

    def again(self, order: Order, directory: Path, *, ends: bool) -> LaunchPlan | None:
        """A driver ends with its process, and spark-submit of a driver elsewhere knows nothing to go on with."""
        return None


def is_of_another(process: Process) -> bool:
    """Whether a job runs as another user than the monitor's. Raises LaunchError.

    What lies in the monitor's directory it does not execute or load: every program of the monitor's user may change it.
    """
    return bool(process.run_as) and account(process.run_as).uid != os.geteuid()


def _master(process: Process, home: Path, environ: Mapping[str, str]) -> str:
    """The master of this job, "" where nothing says one. A local one is nobody's to reach but this machine's."""
    return process.spark_master or command.settings(process).get("spark.master") or _default_master(home, environ)


def _closing(process: Process, master: str) -> tuple[list[str], dict[str, str]]:
    """What SparkSubmit is told so that nobody else speaks to a local driver, and the variables that go with it."""
    settings = command.settings(process)
    options = [
        word for key, said in spark_ports.closing(master, settings).items() for word in ("--conf", f"{key}={said}")
    ]
    more, variables = secret.made(master, settings)
    return [*options, *more], {spark_ports.PAGE_ADDRESS: spark_ports.LOOPBACK, **variables}


def _with_jars_in_place(order: Order) -> Order:
    """The order with jars that Spark reads where they lie: any other it hands to whoever asks its port for the name."""
    found = command.files(order.process, "spark_jars")
    there = [name if command.is_elsewhere(name) or _SPECIAL.search(name) else f"local:{name}" for name in found]
    return replace(order, process=replace(order.process, spark_jars=",".join(there)))


def _default_master(home: Path, environ: Mapping[str, str]) -> str:
    """The master that Spark's own conf directory says, "" where it says none."""
    file = Path(environ.get("SPARK_CONF_DIR") or home / "conf", "spark-defaults.conf")
    try:
        said = re.findall(r"^\s*spark\.master[\s=:]+(\S+)", file.read_text(errors="replace"), re.M)
    except OSError:
        return ""
    return str(said[-1]) if said else ""


def _log(directory: Path) -> str:
    """The beginning of Spark's log."""
    try:
        with (directory / STDERR).open("rb") as file:
            return file.read(_FIRST_BYTES).decode(errors="replace")
    except OSError:
        return ""


def check_program(order: Order) -> None:
    """Raises LaunchError when the program is to lie on this machine and does not."""
    program = command.program(order)
    if not command.is_elsewhere(program) and not Path(program).is_file():
        kind = "jar" if order.process.spark_class or program.endswith(".jar") else "PySpark file"
        raise LaunchError(f"no {kind} {program}")


def _with_keytab(process: Process) -> Process:
    """The keytab is a secret like the others."""
    said = [text for text in (process.secrets.strip(), process.spark_keytab) if text]
    return replace(process, secrets=",".join(said)) if process.spark_keytab else process

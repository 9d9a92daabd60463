"""SPKSTART(SUBMIT): plans a cold start, by spark-submit or its java command, and finds what that needs."""

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
from trigmon.launch.spark.conf_options import conf_options
from trigmon.launch.users import account
from trigmon.log import logger
from trigmon.mq.attributes import Process
from trigmon.mq.enums import SparkDeployMode, SparkShort
from trigmon.rules.runs import spark_ports

log = logger()

_FIRST_BYTES = 1 << 18
_SPECIAL = re.compile(r"[*?{\[%#]")
"""Characters with a meaning in a URL or in a pattern of files."""


def spark_home(environ: Mapping[str, str]) -> Path:
    """Returns SPARK_HOME when it has a spark-submit, else the pyspark of this Python. Raises LaunchError."""
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
    """Plans cold starts: by the java command itself, and by spark-submit where that has more to do.

    ``data_directory`` holds below ``java`` files that are written once: the bundled Java's script, and the archives of
    classes. ``makes_archives`` says whether an archive is made where none fits. ``grants`` are the administrator's
    permissions for definitions. ``maker`` is the process that makes an archive, until its end was seen.
    """

    # SparkSubmit copies both streams of the Python it runs to its own stdout, so a traceback is there.
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
        self._warned_of: set[tuple[str, str]] = set()
        self.maker: subprocess.Popen[bytes] | None = None

    def plan(self, order: Order) -> LaunchPlan:
        """See :class:`~trigmon.launch.launch_plan.Launcher`."""
        process = order.process
        check_program(order)
        variables = arguments.variables(process)
        environ = os.environ | variables
        home = spark_home(environ)
        master = _master(process, home, environ)
        is_local = process.spark_deploy_mode != SparkDeployMode.CLUSTER and spark_ports.is_local(master)
        submitted = command.submitted(_with_jars_in_place(order) if is_local else order, process.spark_keytab)
        java = find_java(self.archives.directory, environ)
        if is_of_other_user(process):
            java = replace(java, home=java.image_home, image=Path())
        spark = {"SPARK_HOME": str(home), "JAVA_HOME": str(java.home)}
        for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
            spark[name] = environ.get(name, sys.executable)
        program, more = self._program(home, java, order, environ | spark)
        closing, local = _closing(process, master) if is_local else ([], {})
        self._warn_of_open_settings(process)
        closing += self._private_sockets(process) if is_local else []
        argv = [*program, *closing, *self._closed_page(process, home, environ), *submitted]
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
        """Returns the command before spark-submit's arguments, and its variables."""
        process = order.process
        settings = command.settings(process)
        given = {**environ, **self._grants.variables()}  # the administrator gives these to every program
        if java_command.why_not(home, process, settings, given):
            if is_of_other_user(process) and not java.has_vector_module:
                raise LaunchError(
                    f"RUNAS({process.run_as}): spark-submit itself needs a Java with jdk.incubator.vector, which "
                    f"{java.home} lacks; install one, or name it as JAVA_HOME in SPKENV"
                )
            is_short = process.spark_short == SparkShort.YES
            return [str(home / "bin" / "spark-submit")], java_command.short_variables(
                settings, given
            ) if is_short else {}
        key = class_archive.key(home, java)
        file = None if is_of_other_user(process) else self.archives.usable(key)
        if file is None and self._makes_archives and not is_of_other_user(process):
            self._wanted = home, java
        using = class_archive.using(file, java) if file else ()
        argv = [*java_command.command(home, java, process, settings, using), *java_command.ports(settings)]
        return argv, java_command.environment(home) | self._compiled(home, order, settings, given)

    def _compiled(
        self, home: Path, order: Order, settings: Mapping[str, str], given: Mapping[str, str]
    ) -> dict[str, str]:
        """Returns another SPARK_HOME for a PySpark job, with PySpark compiled; nothing where that is not possible.

        To YARN the zip itself is sent.
        """
        is_python = command.program(order).endswith(".py") and not order.process.spark_master.startswith("yarn")
        if not is_python or is_of_other_user(order.process) or not compiled.is_of_use(home, settings, given):
            return {}
        try:
            return {"SPARK_HOME": str(compiled.linked(self.archives.directory, home))}
        except OSError as error:
            log.warning("no links to a compiled PySpark can be made", error=str(error))
            return {}

    def _closed_page(self, process: Process, home: Path, environ: Mapping[str, str]) -> list[str]:
        """Returns options that protect the page of a driver on this machine, unless its definition names a filter.

        Only the monitor's user can read the file. So a job of another user (RUNAS) has no page, unless its definition
        enables it.
        """
        settings = command.settings(process)
        is_elsewhere = process.spark_deploy_mode == SparkDeployMode.CLUSTER or process.spark_master.startswith("yarn")
        enabled = settings.get("spark.ui.enabled", "").lower()
        if is_elsewhere or enabled == "false" or "spark.ui.filters" in settings:
            return []
        if is_of_other_user(process):
            return [] if enabled else ["--conf", "spark.ui.enabled=false"]
        try:
            web_page.kept(self._page)
        except OSError as error:
            raise LaunchError(f"the driver's page cannot be closed to others: {error}") from None
        return web_page.options(self._page, home, environ)

    def _private_sockets(self, process: Process) -> list[str]:
        """Returns options by which the driver's Pythons use private sockets; none for another user (RUNAS)."""
        if is_of_other_user(process):
            return []
        try:
            return sockets.options(self._sockets, command.settings(process))
        except OSError as error:
            raise LaunchError(f"no directory for the sockets of Python can be made: {error}") from None

    def _warn_of_open_settings(self, process: Process) -> None:
        """Logs a warning, once, for a definition whose settings open its driver to other users."""
        opened = process.name, " ".join(spark_ports.open_to_others(process))
        if opened[1] and opened not in self._warned_of:
            self._warned_of.add(opened)
            log.warning("other users can connect to a Spark driver", process=opened[0], by=opened[1])

    def tend(self) -> None:
        """Starts to make the archive that an ended run did not find, one at a time.

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

    def record_fields(self, order: Order, directory: Path) -> dict[str, str]:
        """Returns the id of the Spark application, where the cluster gave it one and Spark's log has it."""
        found = log_lines.application_in(_log(directory))
        return {"application_id": found} if found else {}

    def lead(self, order: Order, directory: Path, pid: int) -> Lead | None:
        """See :class:`~trigmon.launch.launch_plan.Launcher`. In client mode the driver is the run's own process."""
        text = _log(directory)
        key = "" if is_of_other_user(order.process) else web_page.key_in(self._page)
        return Lead(log_lines.application_in(text), driver_status.of_local_driver(text, pid), page_key=key)

    def again(self, order: Order, directory: Path, *, ends: bool) -> LaunchPlan | None:
        """Returns None: a local driver ends with its process, and spark-submit cannot follow another one again."""
        return None


def is_of_other_user(process: Process) -> bool:
    """Returns whether a job runs as another user than the monitor's. Raises LaunchError.

    Such a job must not execute or load files of the monitor's directory: programs of the monitor's user can change
    them.
    """
    return bool(process.run_as) and account(process.run_as).uid != os.geteuid()


def _master(process: Process, home: Path, environ: Mapping[str, str]) -> str:
    """Returns the master of this job, "" where none is set."""
    return process.spark_master or command.settings(process).get("spark.master") or _default_master(home, environ)


def _closing(process: Process, master: str) -> tuple[list[str], dict[str, str]]:
    """Returns options of SparkSubmit by which other users cannot connect to a local driver, and its variables."""
    settings = command.settings(process)
    more, variables = secret.made(master, settings)
    variables = {spark_ports.PAGE_ADDRESS: spark_ports.LOOPBACK} | variables
    return conf_options(spark_ports.closing(master, settings)) + more, variables


def _with_jars_in_place(order: Order) -> Order:
    """Returns the order with local: jars: Spark would serve any other file to every client of its port."""
    found = command.files(order.process, "spark_jars")
    there = [name if command.is_elsewhere(name) or _SPECIAL.search(name) else f"local:{name}" for name in found]
    return replace(order, process=replace(order.process, spark_jars=",".join(there)))


def _default_master(home: Path, environ: Mapping[str, str]) -> str:
    """Returns the master in Spark's own conf directory, "" where it has none."""
    file = Path(environ.get("SPARK_CONF_DIR") or home / "conf", "spark-defaults.conf")
    try:
        found = re.findall(r"^\s*spark\.master[\s=:]+(\S+)", file.read_text(errors="replace"), re.M)
    except OSError:
        return ""
    return str(found[-1]) if found else ""


def _log(directory: Path) -> str:
    """Returns the beginning of Spark's log."""
    try:
        with (directory / STDERR).open("rb") as file:
            return file.read(_FIRST_BYTES).decode(errors="replace")
    except OSError:
        return ""


def check_program(order: Order) -> None:
    """Raises LaunchError when the program is a file of this machine and is missing."""
    program = command.program(order)
    if not command.is_elsewhere(program) and not Path(program).is_file():
        kind = "jar" if order.process.spark_class or program.endswith(".jar") else "PySpark file"
        raise LaunchError(f"no {kind} {program}")


def _with_keytab(process: Process) -> Process:
    """Returns the process with the keytab among its secrets."""
    names = [text for text in (process.secrets.strip(), process.spark_keytab) if text]
    return replace(process, secrets=",".join(names)) if process.spark_keytab else process

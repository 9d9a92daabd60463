"""The java command that spark-submit would execute, without its shell and its Java machine that prints the command.

spark-submit adds to its arguments: the class path, the heap, the options that Spark needs of a Java with modules, a
fixed hash seed of Python's strings. SparkSubmit itself reads the rest, so every option of spark-submit works. Unusual
jobs (a conf directory, an own class path, an option that spark-submit itself evaluates) are left to spark-submit:
:func:`why_not` returns the reason. Pure but for looking at files. Source: the command of spark-submit of Spark 4.3
(SPARK_PRINT_LAUNCH_COMMAND=1); a test compares the two.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

from trigmon.launch.spark.cold.java import Java
from trigmon.mq.attributes import Process
from trigmon.mq.enums import SparkDeployMode, SparkShort

VERSION = "4.3"
"""The Spark whose launcher is known here; any other starts by its own spark-submit."""

MAIN = "org.apache.spark.deploy.SparkSubmit"
VECTOR = "--add-modules=jdk.incubator.vector"
DEFAULT_MEMORY = "1g"

SHORT = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData")
"""Options by which a Java machine starts faster and runs slower: for jobs of seconds."""

_OPENED = (
    *("java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio", "java.util"),
    *("java.util.concurrent", "java.util.concurrent.atomic", "jdk.internal.ref", "sun.nio.ch", "sun.nio.cs"),
    *("sun.security.action", "sun.util.calendar"),
)
_OPTIONS = (
    *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED),
    "--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
    "-Dderby.connection.requireAuthentication=false",
)
PORTS = 100
"""Ports behind the first one that are tried for a driver's web server: with Spark's own 16 the 18th driver fails."""
_PORT_SETTINGS = ("spark.port.maxRetries", "spark.ui.port", "spark.ui.enabled")
_OWN_OPTIONS = ("spark.driver.defaultJavaOptions", "spark.driver.extraJavaOptions")
# With any of these spark-submit does more than this module.
_VARIABLES = (
    *("SPARK_CONF_DIR", "SPARK_CLASSPATH", "SPARK_DIST_CLASSPATH", "HADOOP_CONF_DIR", "YARN_CONF_DIR"),
    *("SPARK_SUBMIT_OPTS", "SPARK_DRIVER_MEMORY", "SPARK_MEM", "SPARK_PREPEND_CLASSES", "SPARK_TESTING"),
    *("SPARK_SQL_TESTING", "SPARK_SCALA_SHELL", "SPARK_REMOTE", "SPARK_API_MODE", "SPARK_CONNECT_MODE"),
    *("SPARK_CONNECT_MODE_ENABLED", "SPARK_ENV_LOADED"),
)
_SETTINGS = (
    *("spark.driver.extraClassPath", "spark.driver.defaultExtraClassPath", "spark.driver.extraLibraryPath"),
    *("spark.submit.deployMode", "spark.remote", "spark.api.mode"),
)


def why_not(home: Path, process: Process, settings: Mapping[str, str], environ: Mapping[str, str]) -> str:
    """Returns why spark-submit must start this job, and "" when the java command can be executed directly.

    ``home`` is SPARK_HOME, ``settings`` are SPKCONF's.
    """
    return _other_spark(home) or _set(settings, environ) or _other_job(process, settings)


def _other_spark(home: Path) -> str:
    if not (home / "find_spark_home.py").is_file() or not list((home / "jars").glob(f"spark-core_*-{VERSION}.*.jar")):
        return f"{home} is no Spark {VERSION} laid out as pip does"
    return f"{home / 'conf'} holds settings of its own" if (home / "conf").exists() else ""


def _set(settings: Mapping[str, str], environ: Mapping[str, str]) -> str:
    found = [f"the variable {name}" for name in _VARIABLES if environ.get(name)]
    found += [key for key in _SETTINGS if key in settings]
    return f"{found[0]} is set" if found else ""


def _other_job(process: Process, settings: Mapping[str, str]) -> str:
    if process.spark_deploy_mode == SparkDeployMode.CLUSTER:
        return "its driver runs in the cluster"
    if process.spark_class.startswith("org.apache.spark."):
        return f"{process.spark_class} is a program of Spark's own"
    try:
        sets_heap = any(option.startswith("-Xmx") for option in _own_options(settings))
    except ValueError:
        return "its Java options have an open quote"
    return "its Java options set the heap" if sets_heap else ""


def class_path(home: Path, java: Java) -> str:
    """Returns the class path of the command. The Java machine expands the star in the directory's own order.

    Spark names the jar of slf4j before all others, and so twice. Java 21 refuses every archive with a jar twice.
    """
    logging = [] if java.version == 21 else sorted(str(path) for path in (home / "jars").glob("slf4j-api-*.jar"))
    return ":".join([str(home / "conf"), *logging, f"{home / 'jars'}/*"])


def java_options(java: Java) -> list[str]:
    """Returns the options that Spark needs of a Java with modules.

    An image without the vector module would not start with the option for it.
    """
    return ["-XX:+IgnoreUnrecognizedVMOptions", *([VECTOR] if java.has_vector_module else []), *_OPTIONS]


def command(
    home: Path, java: Java, process: Process, settings: Mapping[str, str], more: tuple[str, ...] = ()
) -> list[str]:
    """Returns the java command up to spark-submit's arguments; ``more`` are options for the archive of classes."""
    memory = process.spark_driver_memory or settings.get("spark.driver.memory") or DEFAULT_MEMORY
    own = _own_options(settings)
    short = short_options(own) if process.spark_short == SparkShort.YES else []
    # A job's own options come last: of two that contradict each other the last counts.
    own = [*short, *more, *own]
    return [str(java.executable), "-cp", class_path(home, java), f"-Xmx{memory}", *own, *java_options(java), MAIN]


def ports(settings: Mapping[str, str]) -> list[str]:
    """Returns options of SparkSubmit so that many drivers fit on one host; none where the job sets a port itself.

    Not port 0: a driver with a quiet log is found by the ports that Spark tries.
    """
    return [] if any(key in settings for key in _PORT_SETTINGS) else ["--conf", f"spark.port.maxRetries={PORTS}"]


def short_options(own: list[str]) -> list[str]:
    """Returns the options of a short job beside its own: a Java with two garbage collectors does not start."""
    has_collector = any(option.startswith("-XX:+Use") and option.endswith("GC") for option in own)
    return [option for option in SHORT if not (has_collector and option.endswith("GC"))]


def short_variables(settings: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables that add these options to the Java machines of spark-submit and its driver."""
    own = " ".join(settings.get(key, "") for key in _OWN_OPTIONS).split()
    added = " ".join(short_options(own))
    names = ("SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS")
    return {name: f"{environ.get(name, '')} {added}".strip() for name in names}


def environment(home: Path) -> dict[str, str]:
    """Returns the variables that spark-submit sets."""
    return {
        "PYTHONHASHSEED": "0",
        "SPARK_ENV_LOADED": "1",
        "SPARK_CONF_DIR": str(home / "conf"),
        "SPARK_SCALA_VERSION": "2.13",
    }


def _own_options(settings: Mapping[str, str]) -> list[str]:
    """Returns the job's Java options, quoted as for a shell. Raises ValueError for an open quote."""
    return [option for key in _OWN_OPTIONS for option in shlex.split(settings.get(key, ""))]

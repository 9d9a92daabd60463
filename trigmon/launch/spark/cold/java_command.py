"""The java command that spark-submit would make, made here: no shell, and no Java machine only to write a command line.

What spark-submit adds to what it is told: the class path, the heap, the options Spark needs of a Java of modules, a
fixed hash of Python's strings. SparkSubmit itself reads the rest, so every option of spark-submit works. Anything out
of the ordinary (a conf directory, a class path of one's own, an option that spark-submit itself would judge) is
spark-submit's to do: :func:`why_not` tells what. Pure but for looking at files. Source: what spark-submit of Spark 4.3
executes (SPARK_PRINT_LAUNCH_COMMAND=1); a test holds the two against each other.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

from trigmon.launch.spark.cold.java import Java
from trigmon.mq.attributes import Process
from trigmon.mq.enums import SparkDeployMode, SparkShort

VERSION = "4.3"
"""The Spark whose launcher is known here; any other is left to its own spark-submit."""

MAIN = "org.apache.spark.deploy.SparkSubmit"
VECTOR = "--add-modules=jdk.incubator.vector"
DEFAULT_MEMORY = "1g"

SHORT = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData")
"""What makes a Java machine start faster and run slower: for jobs of seconds."""

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
"""So many ports behind the first one are tried for a driver's web server: Spark's own 16 end the 18th driver."""
_PORT_SETTINGS = ("spark.port.maxRetries", "spark.ui.port", "spark.ui.enabled")
_OWN_OPTIONS = ("spark.driver.defaultJavaOptions", "spark.driver.extraJavaOptions")
# Each would have spark-submit do more than is done here.
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
    """Why this job is spark-submit's to start, and "" when it can be started directly.

    ``home`` is SPARK_HOME, ``settings`` are SPKCONF's.
    """
    return _other_spark(home) or _set(settings, environ) or _other_job(process, settings)


def _other_spark(home: Path) -> str:
    if not (home / "find_spark_home.py").is_file() or not list((home / "jars").glob(f"spark-core_*-{VERSION}.*.jar")):
        return f"{home} is no Spark {VERSION} laid out as pip does"
    return f"{home / 'conf'} holds settings of its own" if (home / "conf").exists() else ""


def _set(settings: Mapping[str, str], environ: Mapping[str, str]) -> str:
    said = [f"the variable {name}" for name in _VARIABLES if environ.get(name)]
    said += [key for key in _SETTINGS if key in settings]
    return f"{said[0]} is set" if said else ""


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
    """The class path as the command says it. The Java machine fills in the star in the directory's own order.

    Spark names the jar of slf4j before all others, and so twice: 21 refuses every archive where a jar stands twice.
    """
    logging = [] if java.version == 21 else sorted(str(path) for path in (home / "jars").glob("slf4j-api-*.jar"))
    return ":".join([str(home / "conf"), *logging, f"{home / 'jars'}/*"])


def java_options(java: Java) -> list[str]:
    """What Spark needs of a Java of modules. An image without the vector module would refuse to start with it."""
    return ["-XX:+IgnoreUnrecognizedVMOptions", *([VECTOR] if java.has_vector_module else []), *_OPTIONS]


def command(
    home: Path, java: Java, process: Process, settings: Mapping[str, str], more: tuple[str, ...] = ()
) -> list[str]:
    """The java command up to the words that spark-submit is told; ``more`` are options for the archive of classes."""
    memory = process.spark_driver_memory or settings.get("spark.driver.memory") or DEFAULT_MEMORY
    own = _own_options(settings)
    short = short_options(own) if process.spark_short == SparkShort.YES else []
    # A job's own options come after ours: of two that contradict each other the last counts.
    own = [*short, *more, *own]
    return [str(java.executable), "-cp", class_path(home, java), f"-Xmx{memory}", *own, *java_options(java), MAIN]


def ports(settings: Mapping[str, str]) -> list[str]:
    """What SparkSubmit is told so that many drivers fit on one host; nothing where the job says itself what it wants.

    Port 0 would be as good, but for a driver whose log is quiet: it is found by the ports that Spark is known to try.
    """
    return [] if any(key in settings for key in _PORT_SETTINGS) else ["--conf", f"spark.port.maxRetries={PORTS}"]


def short_options(own: list[str]) -> list[str]:
    """The options of a short job beside its own: a Java machine with two collectors of garbage does not start."""
    has_collector = any(option.startswith("-XX:+Use") and option.endswith("GC") for option in own)
    return [option for option in SHORT if not (has_collector and option.endswith("GC"))]


def short_variables(settings: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """The same for spark-submit: what its own Java machine and the driver's are to be told, behind what they are."""
    own = " ".join(settings.get(key, "") for key in _OWN_OPTIONS).split()
    added = " ".join(short_options(own))
    names = ("SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS")
    return {name: f"{environ.get(name, '')} {added}".strip() for name in names}


def environment(home: Path) -> dict[str, str]:
    """The variables that spark-submit sets."""
    return {
        "PYTHONHASHSEED": "0",
        "SPARK_ENV_LOADED": "1",
        "SPARK_CONF_DIR": str(home / "conf"),
        "SPARK_SCALA_VERSION": "2.13",
    }


def _own_options(settings: Mapping[str, str]) -> list[str]:
    """The job's Java options, quoted as for a shell. Raises ValueError for an open quote."""
    return [option for key in _OWN_OPTIONS for option in shlex.split(settings.get(key, ""))]

"""Checks of a process definition's Spark attributes against what Spark accepts when it starts. Pure.

Single attributes are checked whatever the application type, as all of ours are. Combinations are checked as well, so
that a job that could only fail is refused when it is defined, with the remedy. Sources: spark-submit's own refusals
(SparkSubmit and SparkSubmitArguments of Spark 4.3), and what its JVM takes.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator

from trigmon.mq.attributes import Process
from trigmon.mq.enums import ApplType, SparkDeployMode, SparkIsolation, SparkStart

LISTS = ("spark_py_files", "spark_files", "spark_archives", "spark_jars")
"""The attributes that are lists of files, divided by commas."""

SECRET_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")
"""One file name, as systemd.exec(5) allows for a credential; none that is hidden, or leads elsewhere."""

_LOCAL = re.compile(r"local(\[(\*|[0-9]+)(, *[0-9]+)?\])?|local-cluster\[[0-9]+, *[0-9]+, *[0-9]+\]")
_URL = re.compile(r"[a-z][a-z0-9+-]*://[^\s/]\S*")
_MEMORY = re.compile(r"([1-9][0-9]{0,11})([kmgtKMGT])")
_UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
# Spark's own floor, one and a half times what it reserves: a driver or executor of less ends with an error.
_LEAST_MEMORY = 471_859_200
_CLASS = re.compile(r"[A-Za-z_$][\w$]*(\.[A-Za-z_$][\w$]*)*", re.ASCII)
_PACKAGE = re.compile(r"[^\s:/,]+[:/][^\s:/,]+:[^\s:/,]+")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_OWN_VARIABLES = re.compile(
    r"TRIGMON_(?!(?:TASK_ADDRESS|RECONNECT|CALL_TIMEOUT)$)\w*|CREDENTIALS_DIRECTORY|SPARK_REMOTE"
)
# A session shares the JVM and the identity of its server, so these cannot be its own.
_NOT_OF_A_SESSION = (
    "spark_class",
    "spark_packages",
    "spark_driver_memory",
    "spark_driver_cores",
    "spark_executor_memory",
    "spark_executor_cores",
    "spark_num_executors",
    "spark_principal",
    "spark_keytab",
)


def names_in(text: str) -> list[str]:
    """Returns the names of a list of files or packages, blanks around the commas left out."""
    return [name.strip() for name in text.split(",")] if text.strip() else []


def is_warm(process: Process) -> bool:
    """Returns whether it is started as a session of a Spark Connect server."""
    return process.spark_start == SparkStart.CONNECT and process.spark_isolation == SparkIsolation.SESSION


def _words(text: str) -> list[str]:
    """Returns ``text`` split as by a shell; most often there is none. Raises ValueError."""
    return shlex.split(text) if text else []


def environment_of(process: Process) -> dict[str, str]:
    """Returns the variables that SPKENV sets. Raises ValueError for words that set none."""
    pairs = [word.partition("=") for word in _words(process.spark_environment)]
    if wrong := [name for name, equals, _ in pairs if not equals or not _VARIABLE.fullmatch(name)]:
        raise ValueError(f"{wrong[0]!r} sets no variable")
    return {name: value for name, _, value in pairs}


def master(text: str) -> str:
    """Returns what is wrong with a master; "" when nothing is."""
    if not text or text == "yarn" or _LOCAL.fullmatch(text) or _URL.fullmatch(text):
        return ""
    return "local, local[N], local[*], spark://HOST:PORT, yarn, k8s://..., or (SPKSTART(CONNECT)) sc://HOST:PORT"


def memory(text: str) -> str:
    """Returns what is wrong with an amount of memory; "" when nothing is."""
    found = _MEMORY.fullmatch(text)
    if text and not found:
        return "a whole number with its unit, k, m, g or t: 512m or 2g"
    if found and int(found[1]) * _UNITS[found[2].lower()] < _LEAST_MEMORY:
        return "at least 512m: Spark starts with no less than 450m"
    return ""


def files(text: str) -> str:
    """Returns what is wrong with a list of files; "" when nothing is."""
    wrong = [name for name in names_in(text) if not name or re.search(r"\s", name)]
    return f"names of files divided by commas, none blank and none with a blank, not {wrong[0]!r}" if wrong else ""


def packages(text: str) -> str:
    """Returns what is wrong with a list of Maven coordinates; "" when nothing is."""
    wrong = [name for name in names_in(text) if not _PACKAGE.fullmatch(name)]
    return f"packages divided by commas, each group:artifact:version, not {wrong[0]!r}" if wrong else ""


def _main_class(text: str) -> str:
    return "" if not text or _CLASS.fullmatch(text) else "the name of a Java class, such as org.example.Load"


def _principal(text: str) -> str:
    wrong = re.search(r"\s", text) or text.startswith("-")
    return "the name of a Kerberos principal, such as load/host@REALM, without a blank" if wrong else ""


def _keytab(text: str) -> str:
    if not text or SECRET_NAME.fullmatch(text):
        return ""
    return "the name of a secret, not a path: a file of that name lies where this monitor's secrets do"


def _environment(text: str) -> str:
    try:
        variables = environment_of(Process(name="", spark_environment=text))
    except ValueError as error:
        why = str(error)
        return f"words of the form NAME=value ({why[:1].lower()}{why[1:]})"
    if taken := [name for name in variables if _OWN_VARIABLES.fullmatch(name)]:
        return f"other variables than {taken[0]}, which the monitor sets itself"
    return ""


CHECKS: dict[str, Callable[[str], str]] = {
    "spark_master": master,
    "spark_class": _main_class,
    **dict.fromkeys(LISTS, files),
    "spark_packages": packages,
    "spark_driver_memory": memory,
    "spark_executor_memory": memory,
    "spark_principal": _principal,
    "spark_keytab": _keytab,
    "spark_environment": _environment,
}
"""What is wrong with the text of one attribute, by its long name."""


def contradictions(process: Process) -> Iterator[tuple[str, str]]:
    """Yields attributes that cannot stand beside the others, by long name, and what they must be instead."""
    if bool(process.spark_principal) != bool(process.spark_keytab):
        wanted, other = ("spark_keytab", "SPKPRINC") if process.spark_principal else ("spark_principal", "SPKKEYTAB")
        yield wanted, f"given together with {other}: a principal logs in by its keytab"
    if process.spark_start == SparkStart.REST:
        yield from _by_rest(process)
    elif is_warm(process):
        yield from _as_a_session(process)
    else:
        yield from _by_submit(process)


def _by_rest(process: Process) -> Iterator[tuple[str, str]]:
    if not process.spark_master.startswith(("spark://", "http://", "https://")):
        yield "spark_master", "spark://HOST:PORT with SPKSTART(REST): the REST server of a standalone cluster"
    if process.spark_keytab:
        yield "spark_keytab", "blank with SPKSTART(REST): a file of this machine does not reach the cluster's"


def _as_a_session(process: Process) -> Iterator[tuple[str, str]]:
    master_url = process.spark_master
    if master_url and not master_url.startswith(("local", "sc://")):
        yield (
            "spark_master",
            "blank or local[N] with SPKSTART(CONNECT), for a server that the monitor keeps, or the sc://HOST:PORT "
            "of one elsewhere; for another master say SPKSTART(SUBMIT) or SPKISOL(PROCESS)",
        )
    if process.spark_deploy_mode == SparkDeployMode.CLUSTER:
        yield (
            "spark_deploy_mode",
            "CLIENT with SPKSTART(CONNECT): the job's own process is a client of the server; "
            "for a driver in the cluster say SPKSTART(REST) or SPKSTART(SUBMIT)",
        )
    for name in _NOT_OF_A_SESSION:
        if getattr(process, name):
            yield name, "not given with SPKSTART(CONNECT), whose server's it is, unless with SPKISOL(PROCESS)"
    if wrong := [key for key in _keys(process.spark_conf) if not key.startswith("spark.sql.")]:
        yield (
            "spark_conf",
            f"settings that a session can have of its own with SPKSTART(CONNECT), spark.sql.*, not {wrong[0]}: "
            "a server that the monitor keeps is named in the setting connect.conf",
        )


def _keys(conf: str) -> list[str]:
    """Returns the keys of SPKCONF that are Spark's; none where its words are wrong, which is reported already."""
    try:
        return [key for key in (word.partition("=")[0] for word in _words(conf)) if key.startswith("spark.")]
    except ValueError:
        return []


def _by_submit(process: Process) -> Iterator[tuple[str, str]]:
    master_url = process.spark_master
    if master_url.startswith("sc://"):
        how = "SPKISOL(SESSION)" if process.spark_start == SparkStart.CONNECT else "SPKSTART(CONNECT)"
        yield "spark_master", f"another than sc://HOST:PORT, which is a server of Spark Connect, or {how} be given"
    if process.spark_deploy_mode != SparkDeployMode.CLUSTER:
        return
    if not master_url or master_url.startswith("local"):
        yield "spark_deploy_mode", "CLIENT with a local master; CLUSTER needs SPKMASTER to name a cluster"
    elif master_url.startswith("spark://") and _is_python(process):
        yield (
            "spark_deploy_mode",
            "CLIENT, or SPKSTART be REST: by spark-submit a standalone cluster takes no Python program",
        )


def _is_python(process: Process) -> bool:
    """Returns whether what is started is a Python program, as far as its definition tells."""
    if process.spark_class or process.appl_type != ApplType.SPARK:
        return False
    try:
        words = shlex.split(process.appl_id)
    except ValueError:
        return False  # reported already
    return bool(words) and not words[0].endswith(".jar")

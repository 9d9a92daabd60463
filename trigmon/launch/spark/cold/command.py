"""The arguments of spark-submit for a job: each field of the definition as an option. Pure functions.

The other launchers use the same parts: the program, its arguments, its settings, its files. Placeholders are filled in
the name and the arguments. The functions raise LaunchError: an own definition was refused for the same when it was
made, but a trigger message may come from another queue manager.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from trigmon.launch import arguments as words
from trigmon.launch.launch_plan import LaunchError, Order
from trigmon.launch.spark.conf_options import conf_options
from trigmon.mq.attributes import Process
from trigmon.mq.enums import SparkDeployMode
from trigmon.rules.runs import check_spark
from trigmon.rules.runs.check_program import has_placeholder

_LISTS = {name: "--" + name.removeprefix("spark_").replace("_", "-") for name in check_spark.LISTS}
_SIZES = {
    "spark_driver_memory": "--driver-memory",
    "spark_driver_cores": "--driver-cores",
    "spark_executor_memory": "--executor-memory",
    "spark_executor_cores": "--executor-cores",
    "spark_num_executors": "--num-executors",
}
# A driver in the cluster gets its variables from the cluster's manager; each has a setting of its own for that.
_CLUSTER_VARIABLES = {"yarn": "spark.yarn.appMasterEnv", "k8s": "spark.kubernetes.driverEnv"}


def submitted(order: Order, keytab: str = "") -> list[str]:
    """Returns the words behind ``spark-submit``: options, the program, its arguments.

    ``keytab`` is the name of the file that SPKKEYTAB names; its content is not read here.
    """
    words.check_characters(order)
    return [*_options(order, keytab), program(order), *arguments(order)]


def program(order: Order) -> str:
    """Returns the first word of APPLICID: the PySpark file or the jar, as a path or URL for Spark."""
    return located(_program_words(order)[0], order.process.working_directory)


def arguments(order: Order) -> list[str]:
    """Returns the program's arguments: APPLICID's further words, the definition's, ENVRDATA's; placeholders filled."""
    own = words.split_words(order.process.spark_arguments, "SPKARGS")
    return words.filled([*_program_words(order)[1:], *own, *words.environment_words(order.trigger.env_data)], order)


def settings(process: Process) -> dict[str, str]:
    """Returns the settings of SPKCONF by key; of a repeated key the last counts, as with spark-submit."""
    found = {}
    for setting in words.split_words(process.spark_conf, "SPKCONF"):
        key, equals, value = setting.partition("=")
        if not key or not equals:
            raise LaunchError(f"SPKCONF must hold words of the form key=value, not {setting!r}")
        found[key] = value
    return found


def files(process: Process, name: str) -> list[str]:
    """Returns the files of one list of the definition, by the attribute's long name, as paths or URLs for Spark."""
    return [located(file, process.working_directory) for file in check_spark.names_in(getattr(process, name)) if file]


def located(name: str, working_directory: str) -> str:
    """Returns a file's name for Spark: a relative one is beside the definition, a URL stays as it is."""
    if not name or is_elsewhere(name):
        return name
    return str(Path(working_directory, name))


def is_elsewhere(name: str) -> bool:
    """Returns whether a file's name is a URL, which this machine's file system need not know."""
    return "://" in name or name.startswith("local:")


def _program_words(order: Order) -> list[str]:
    found = words.split_words(order.trigger.appl_id, "APPLICID") or [""]
    if not found[0] or has_placeholder(found[:1]) or found[0].startswith("-"):
        raise LaunchError(f"APPLICID must begin with the PySpark file to run, not {found[0]!r}")
    return found


def _options(order: Order, keytab: str) -> Iterator[str]:
    process = order.process
    if process.spark_master:
        yield from ("--master", process.spark_master)
    if process.spark_deploy_mode == SparkDeployMode.CLUSTER:
        yield from ("--deploy-mode", "cluster")
    if process.spark_name:
        yield from ("--name", *words.filled([process.spark_name], order))
    if process.spark_class:
        yield from ("--class", process.spark_class)
    yield from conf_options(_cluster_variables(process) | settings(process))
    for name, option in _LISTS.items():
        if found := files(process, name):
            yield from (option, ",".join(found))
    if found := check_spark.names_in(process.spark_packages):
        yield from ("--packages", ",".join(found))
    for name, option in _SIZES.items():
        if size := getattr(process, name):
            yield from (option, str(size))
    if process.spark_principal:
        yield from ("--principal", process.spark_principal, "--keytab", keytab)


def _cluster_variables(process: Process) -> dict[str, str]:
    kind = process.spark_master.partition(":")[0]
    if process.spark_deploy_mode != SparkDeployMode.CLUSTER or kind not in _CLUSTER_VARIABLES:
        return {}
    return {f"{_CLUSTER_VARIABLES[kind]}.{name}": value for name, value in words.variables(process).items()}

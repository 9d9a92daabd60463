"""On which addresses a Spark driver listens, and whether it authenticates its peers. Pure.

A program that can connect to a driver's ports runs code as its user: Spark's own RPC and block transfer run what they
are sent.
So every driver that trigmon starts asks for a secret and listens on the loopback interface alone, unless its definition
says otherwise itself. A driver of a cluster has to be reached by its executors, and the secret is the cluster's, so
there both are the definition's to say. Source: Spark's documentation of its security, and SecurityManager of Spark 4.3,
which makes the secret itself for a local master.
"""

from __future__ import annotations

import ipaddress
import re
import shlex
from collections.abc import Collection, Iterator, Mapping

from trigmon.mq.attributes import Process
from trigmon.mq.enums import ApplType, SparkDeployMode, SparkStart
from trigmon.rules.runs import check_spark

LOOPBACK = "127.0.0.1"
AUTHENTICATE = "spark.authenticate"
ADDRESSES = ("spark.driver.host", "spark.driver.bindAddress")
PAGE_ADDRESS = "SPARK_LOCAL_IP"
"""The variable that says where the driver's page listens; no setting does."""

_LOCAL = re.compile(r"local(-cluster)?(\[.*\])?")


def is_local(master: str) -> bool:
    """Returns whether all of Spark with this master is on this machine; blank is Spark's default, ``local[*]``."""
    return not master or bool(_LOCAL.fullmatch(master))


def closing(master: str, settings: Mapping[str, str]) -> dict[str, str]:
    """Returns the settings that close a driver with this master to others; a key in ``settings`` stays as it is."""
    if not is_local(master):
        return {}
    return {
        key: value
        for key, value in ({AUTHENTICATE: "true"} | dict.fromkeys(ADDRESSES, LOOPBACK)).items()
        if key not in settings
    }


def opened(settings: Mapping[str, str]) -> list[str]:
    """Returns the settings (``key=value``) by which a driver listens beyond loopback, or does without a secret."""
    found = [f"{key}={settings[key]}" for key in ADDRESSES if key in settings and not is_loopback(settings[key])]
    if not authenticates(settings):
        found.append(f"{AUTHENTICATE}={settings[AUTHENTICATE]}")
    return found


def authenticates(settings: Mapping[str, str]) -> bool:
    """Returns whether a driver with these settings asks for a secret, as it does unless they say otherwise."""
    return settings.get(AUTHENTICATE, "true").strip().lower() == "true"


def is_loopback(address: str) -> bool:
    """Returns whether only programs of this machine reach it. A name is one only where no resolver is asked for it."""
    try:
        return ipaddress.ip_address(address.strip("[]")).is_loopback
    except ValueError:
        return address == "localhost"


def open_to_others(process: Process) -> Iterator[str]:
    """Yields what of a definition opens its driver beyond loopback or without a secret, each as it is shown."""
    if process.appl_type != ApplType.SPARK or check_spark.is_warm(process):
        return  # no driver of its own
    settings, variables = _pairs(process.spark_conf), _pairs(process.spark_environment)
    if not is_of_this_machine(process):
        if AUTHENTICATE not in settings:
            yield f"SPKMASTER({_master(process)}) without {AUTHENTICATE}=true"
        settings = {key: value for key, value in settings.items() if key == AUTHENTICATE}  # its cluster has to reach it
    elif (address := variables.get(PAGE_ADDRESS)) and not is_loopback(address):
        yield f"SPKENV({PAGE_ADDRESS}={address})"
    yield from (f"SPKCONF({each})" for each in opened(settings))


def warning(process: Process) -> str:
    """Returns the sentence for a person who defines such a process, "" where its driver is closed to others."""
    opened = " ".join(open_to_others(process))
    return f"PROCESS {process.name} has a Spark driver that other users can connect to: {opened}" if opened else ""


def closed(process: Process) -> tuple[str, str]:
    """Returns SPKCONF and SPKENV without what opens the driver; for a cluster's, with the setting that closes it."""
    if not is_of_this_machine(process):
        kept = _without(process.spark_conf, (AUTHENTICATE,))
        return f"{kept} {AUTHENTICATE}=true".strip(), process.spark_environment
    opens = [each.partition("=")[0] for each in opened(_pairs(process.spark_conf))]
    return _without(process.spark_conf, opens), _without(process.spark_environment, (PAGE_ADDRESS,))


def is_of_this_machine(process: Process) -> bool:
    """Returns whether all processes of a run are on the monitor's machine, as far as its definition says."""
    if process.appl_type != ApplType.SPARK:
        return True
    is_here = process.spark_start != SparkStart.REST and process.spark_deploy_mode != SparkDeployMode.CLUSTER
    return is_here and is_local(_master(process))


def _master(process: Process) -> str:
    return process.spark_master or _pairs(process.spark_conf).get("spark.master", "")


def _pairs(text: str) -> dict[str, str]:
    """Returns the words ``key=value`` of a text; none where its words are wrong, which is reported elsewhere."""
    try:
        return {key: value for key, equals, value in (word.partition("=") for word in shlex.split(text)) if equals}
    except ValueError:
        return {}


def _without(text: str, keys: Collection[str]) -> str:
    return shlex.join(word for word in shlex.split(text) if word.partition("=")[0] not in keys)

"""Parser of a Spark driver's log: finds the application's id and the address of its web server.

Pure, standard library only: the supervisor imports it.
"""

from __future__ import annotations

import re

# The ids of a standalone master, of YARN and of Kubernetes. A local application's id is known only to its driver.
_APPLICATION = re.compile(r"\b(?:app-[0-9]{14}-[0-9]{4}|application_[0-9]{13}_[0-9]{4,}|spark-[0-9a-f]{32})\b")
_UI_PORT = re.compile(r"Successfully started service 'SparkUI' on port ([0-9]+)\.")
_UI_HOST = re.compile(r"Start Jetty (\S+):[0-9]+ for SparkUI")
_DRIVER = re.compile(r"DriverWrapper: Driver address: (\S+):[0-9]+")


def application_in(log: str) -> str:
    """Returns the id that a cluster gave the application, "" where the log does not have it (yet)."""
    found = _APPLICATION.search(log)
    return found[0] if found else ""


def ui_in(log: str) -> str:
    """Returns the address of the driver's web server, "" where the log does not have it (yet)."""
    port, bound = _UI_PORT.search(log), _UI_HOST.search(log)
    if port is None or bound is None:
        return ""
    # A server on every address of its machine is reached at the address that the driver's worker uses, if it has one.
    driver = _DRIVER.search(log)
    host = driver[1] if driver and bound[1] in ("0.0.0.0", "::", "[::]") else bound[1]  # noqa: S104 - a text in the log
    return f"http://{host}:{port[1]}"

"""What the log of a Spark driver says of its application: its id, and where its web server is.

Pure, standard library only: the supervisor imports it.
"""

from __future__ import annotations

import re

# As a standalone master, YARN and Kubernetes name applications; a local one is named nowhere but in its driver.
_APPLICATION = re.compile(r"\b(?:app-[0-9]{14}-[0-9]{4}|application_[0-9]{13}_[0-9]{4,}|spark-[0-9a-f]{32})\b")
_UI_PORT = re.compile(r"Successfully started service 'SparkUI' on port ([0-9]+)\.")
_UI_HOST = re.compile(r"Start Jetty (\S+):[0-9]+ for SparkUI")
_DRIVER = re.compile(r"DriverWrapper: Driver address: (\S+):[0-9]+")


def application_in(log: str) -> str:
    """The id that a cluster gave the application, "" where the log does not tell it (yet)."""
    found = _APPLICATION.search(log)
    return found[0] if found else ""


def ui_in(log: str) -> str:
    """The address of the driver's web server, "" where the log does not tell it (yet)."""
    port, bound = _UI_PORT.search(log), _UI_HOST.search(log)
    if port is None or bound is None:
        return ""
    # It listens on every address of its machine: then it is asked where its worker reaches it, if it has one.
    driver = _DRIVER.search(log)
    host = driver[1] if driver and bound[1] in ("0.0.0.0", "::", "[::]") else bound[1]  # noqa: S104 - what the log says
    return f"http://{host}:{port[1]}"

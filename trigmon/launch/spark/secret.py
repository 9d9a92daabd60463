"""The secret of a driver whose executors are other processes of this machine: ``local-cluster[...]``.

Spark makes none itself there. It requires the setting and prefers the variable. Every user may read a command's words,
so the value is in the variable.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping

from trigmon.rules.runs import spark_ports

_SETTING, _VARIABLE = "spark.authenticate.secret", "_SPARK_AUTH_SECRET"


def made(master: str, settings: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """Returns options of SparkSubmit and the variable with a new secret; none where none is needed or one is set."""
    if not master.startswith("local-cluster") or not spark_ports.authenticates(settings) or _SETTING in settings:
        return [], {}
    return ["--conf", f"{_SETTING}={_VARIABLE}"], {_VARIABLE: secrets.token_hex(32)}

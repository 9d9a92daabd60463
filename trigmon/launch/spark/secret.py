"""The secret of a driver whose executors are other processes of this machine: ``local-cluster[...]``.

Spark makes none itself there. It wants the setting and prefers the variable, and everybody may read a command's words.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping

from trigmon.rules.runs import spark_ports

_SETTING, _VARIABLE = "spark.authenticate.secret", "_SPARK_AUTH_SECRET"


def made(master: str, said: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """What SparkSubmit is told, and the variable with a new secret; nothing where none is needed, or there is one."""
    is_wanted = said.get(spark_ports.AUTHENTICATE, "true").strip().lower() == "true"
    if not master.startswith("local-cluster") or not is_wanted or _SETTING in said:
        return [], {}
    return ["--conf", f"{_SETTING}={_VARIABLE}"], {_VARIABLE: secrets.token_hex(32)}

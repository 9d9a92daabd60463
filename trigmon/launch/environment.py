"""What a started program gets of its monitor's environment: what programs need to run here, and nothing by accident.

A monitor may hold a cloud's keys or a database's password; no program of a process definition is to find them. What
more it is to have is listed in the setting ``monitor.environment``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

_KEPT = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_\w+|TZ|TMPDIR"
    # where Java, Spark, its cluster and Python are, and how they are set up
    r"|JAVA_HOME|SPARK_\w+|PYSPARK_\w+|HADOOP_HOME|HADOOP_CONF_DIR|YARN_CONF_DIR|VIRTUAL_ENV|PYTHON\w+"
    # where trigmon's own files are (trigmon.paths), and how it is set
    r"|TRIGMON_\w+|STATE_DIRECTORY|RUNTIME_DIRECTORY|XDG_STATE_HOME|XDG_RUNTIME_DIR"
)
# A session's own: nobody else may enter what they name.
_ONES_OWN = ("XDG_STATE_HOME", "XDG_RUNTIME_DIR", "TMPDIR")
# Relative to where the monitor was started, and worth keeping: by these a program finds its queue manager.
_PATHS = ("TRIGMON_HOME", "TRIGMON_CONFIG", "TRIGMON_RUNTIME", "TRIGMON_QMGR_DATA")


def inherited(environ: Mapping[str, str], *, is_another_users: bool = False) -> dict[str, str]:
    """What a program gets of the monitor's environment; our own paths in it absolute, for it runs elsewhere.

    Who a user is (HOME and the like), a plan for another user's program says itself.
    """
    kept = {name: value for name, value in environ.items() if _KEPT.fullmatch(name)}
    if is_another_users:
        for name in _ONES_OWN:
            kept.pop(name, None)
    paths = {name: str(Path(kept[name]).expanduser().absolute()) for name in _PATHS if kept.get(name)}
    return kept | paths

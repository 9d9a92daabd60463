"""The variables of the monitor's environment that a started program inherits: only those of an allow-list.

A monitor's environment may hold a cloud's keys or a database's password. No program of a process definition may see
them. The setting ``monitor.environment`` lists further variables.
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
# Directories of one user's session: no other user may enter them.
_ONES_OWN = ("XDG_STATE_HOME", "XDG_RUNTIME_DIR", "TMPDIR")
# By these a program finds its queue manager. They may be relative to the monitor's working directory.
_PATHS = ("TRIGMON_HOME", "TRIGMON_CONFIG", "TRIGMON_RUNTIME", "TRIGMON_QMGR_DATA")


def inherited(environ: Mapping[str, str], *, is_another_users: bool = False) -> dict[str, str]:
    """Returns the variables that a program inherits; trigmon's paths are absolute, since it runs in another directory.

    The plan of another user's program sets that user's HOME and the like itself.
    """
    kept = {name: value for name, value in environ.items() if _KEPT.fullmatch(name)}
    if is_another_users:
        for name in _ONES_OWN:
            kept.pop(name, None)
    paths = {name: str(Path(kept[name]).expanduser().absolute()) for name in _PATHS if kept.get(name)}
    return kept | paths

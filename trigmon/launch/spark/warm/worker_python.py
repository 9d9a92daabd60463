"""The program that a warm server starts as Python: its daemons of Python workers are forked, all else is executed.

Spark starts them anew for each session, with all of their imports. :mod:`trigmon.spark.warm.worker_start` has them
forked by a process that has imported all of it.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from trigmon.rules.runs import spark_ports

STARTING = "spark/warm/worker_start.py"


def written(path: Path, name: str, python: str, master: str) -> str:
    """Writes the program to ``path`` and returns its name; ``python`` where it does not help or cannot be executed.

    ``name`` is the fork server's. On a cluster the workers are on other machines. Raises OSError.
    """
    if python != sys.executable or not spark_ports.is_local(master):
        return python
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if os.statvfs(path.parent).f_flag & os.ST_NOEXEC:
        return python
    start = shlex.quote(str(Path(__file__).parents[3] / STARTING))
    word = shlex.quote(python)
    # The file of another version may have gone; then Python does without.
    text = f'#!/bin/sh\n[ -r {start} ] && exec {word} -I -S {start} {shlex.quote(name)} "$@"\nexec {word} "$@"\n'
    beside = path.with_name(f".{path.name}")
    beside.write_text(text)
    beside.chmod(0o700)
    beside.replace(path)
    return str(path.absolute())

"""A copy of SPARK_HOME made of links, in which Spark's Python processes find PySpark compiled.

Spark has every Python that it starts, the driver's and the workers', look for PySpark first in
``SPARK_HOME/python/lib/pyspark.zip``. The zip holds only sources, and Python does not cache the compiled modules of a
zip: each of these processes compiles the same seventy files, about 0.7 s of processor time, one after the other before
the first row. Here ``pyspark.zip`` is a directory with the package itself, as pip has installed and compiled it; all
else is Spark's own. It serves one Python: the one of that package.
"""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

_ZIP = Path("python", "lib", "pyspark.zip")
_SETTINGS = ("spark.pyspark.python", "spark.pyspark.driver.python")
_VARIABLES = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")


def is_of_use(home: Path, settings: Mapping[str, str], environ: Mapping[str, str]) -> bool:
    """Returns whether a PySpark job on this SPARK_HOME runs on this Python, which has this PySpark compiled.

    ``settings`` are SPKCONF's, ``environ`` the variables of the job.
    """
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None or Path(found.origin) != home / "__init__.py":
        return False
    if any(key in settings for key in _SETTINGS) or any(environ.get(name) != sys.executable for name in _VARIABLES):
        return False
    return (home / _ZIP).is_file() and Path(importlib.util.cache_from_source(found.origin)).is_file()


def linked(directory: Path, home: Path) -> Path:
    """Returns the directory of links for this SPARK_HOME, made below ``directory`` if missing. Raises OSError.

    It is made by a rename, so it is never incomplete. Every user may read it, as a job may run as another.
    """
    links = _links(home)
    hashed = hashlib.blake2b(repr(links).encode(), digest_size=12).hexdigest()
    directory = directory.absolute()  # a job has another working directory
    there = directory / f"{hashed}.home"
    if there.is_dir():
        return there
    directory.mkdir(parents=True, exist_ok=True)
    directory.chmod(0o755)
    _remove_stale(directory)
    beside = Path(tempfile.mkdtemp(prefix=".home", dir=directory))
    try:
        for name, target in links:
            link = beside / name
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(target)
        for path in (beside, *(path for path in beside.rglob("*") if not path.is_symlink())):
            path.chmod(0o755)
        with suppress(OSError):  # another launcher has made the same before
            beside.rename(there)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return there


def _links(home: Path) -> list[tuple[str, str]]:
    """Returns the name and the target of each link."""
    found = [(str(_ZIP / "pyspark"), str(home))]
    for depth, name in enumerate(_ZIP.parts):
        beside = Path(*_ZIP.parts[:depth])
        found += [(str(beside / path.name), str(path)) for path in (home / beside).iterdir() if path.name != name]
    return sorted(found)


def _remove_stale(directory: Path) -> None:
    """Removes directories whose Spark is gone."""
    for there in directory.glob("*.home"):
        if not (there / _ZIP / "pyspark" / "__init__.py").exists():
            shutil.rmtree(there, ignore_errors=True)

"""Spark's directory once more, by links, so that its Pythons find PySpark compiled.

A Java machine of Spark's has every Python it starts, the driver's and the workers', look for PySpark first in
``SPARK_HOME/python/lib/pyspark.zip``. That holds sources only, and what is imported from a zip is never kept compiled:
each of these Pythons compiles the same seventy files anew, about 0.7 s of a processor, one after the other on the way
to the first row. Here ``pyspark.zip`` is a directory that holds the package itself, as pip has laid it out and compiled
it; all else is Spark's own. It serves one Python: the one that the package belongs to.
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
    """Whether a PySpark job on this SPARK_HOME runs on our Python, and that has this PySpark compiled.

    ``settings`` are SPKCONF's, ``environ`` the variables that the job is given.
    """
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None or Path(found.origin) != home / "__init__.py":
        return False
    if any(key in settings for key in _SETTINGS) or any(environ.get(name) != sys.executable for name in _VARIABLES):
        return False
    return (home / _ZIP).is_file() and Path(importlib.util.cache_from_source(found.origin)).is_file()


def linked(directory: Path, home: Path) -> Path:
    """The directory of links for this SPARK_HOME, made below ``directory`` where it is not there. Raises OSError.

    It appears whole, by a rename, and is readable for every user, as a job may run as another.
    """
    links = _links(home)
    hashed = hashlib.blake2b(repr(links).encode(), digest_size=12).hexdigest()
    directory = directory.absolute()  # a job works elsewhere
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
        with suppress(OSError):  # another launcher was first: it made the same
            beside.rename(there)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return there


def _links(home: Path) -> list[tuple[str, str]]:
    """Each link's name and what it stands for."""
    found = [(str(_ZIP / "pyspark"), str(home))]
    for depth, name in enumerate(_ZIP.parts):
        beside = Path(*_ZIP.parts[:depth])
        found += [(str(beside / path.name), str(path)) for path in (home / beside).iterdir() if path.name != name]
    return sorted(found)


def _remove_stale(directory: Path) -> None:
    """Removes what leads to no Spark any more."""
    for there in directory.glob("*.home"):
        if not (there / _ZIP / "pyspark" / "__init__.py").exists():
            shutil.rmtree(there, ignore_errors=True)

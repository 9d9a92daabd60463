"""Spark's directory by links: its Pythons find PySpark as pip compiled it, and nothing else is otherwise."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.launch.spark.homes import REAL, linked
from trigmon.launch.spark.cold import spark_home

OURS = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
ZIP = "python/lib/pyspark.zip"
OF_ITS_MAKERS = re.compile("/(tests|benchmark)/")


def names(directory):
    return sorted(path.name for path in directory.iterdir())


def test_every_name_in_it_is_sparks_own_but_the_zip_of_pyspark(tmp_path):
    """A Python that has it where Spark's Java machine puts it imports the very files that pip has compiled."""
    home = spark_home.linked(tmp_path / "java", REAL)
    for inside in ("", "python", "python/lib"):
        assert names(home / inside) == names(REAL / inside)
    assert all((home / name).samefile(REAL / name) for name in names(home) if name != "python")
    environment = {"PYTHONPATH": str(home / ZIP)}
    words = "import pyspark.worker as it; print(it.__file__, it.__cached__)"
    done = subprocess.run([sys.executable, "-c", words], env=environment, capture_output=True, text=True, check=True)
    file, cached = done.stdout.split()
    assert file == f"{home}/{ZIP}/pyspark/worker.py"
    assert Path(cached).samefile(REAL / "__pycache__" / Path(cached).name)


def test_the_zip_holds_the_same_pyspark_as_the_files():
    """Else the links would change what a job runs on. Only the zip has PySpark's own tests and benchmarks."""
    with zipfile.ZipFile(REAL / ZIP) as zipped:
        sources = [name for name in zipped.namelist() if name.endswith(".py") and not OF_ITS_MAKERS.search(name)]
        assert len(sources) > 300
        assert [name for name in sources if zipped.read(name) != (REAL.parent / name).read_bytes()] == []


def test_it_is_made_once_and_is_readable_for_every_user(tmp_path):
    before = os.umask(0o077)
    try:
        home = spark_home.linked(tmp_path / "java", REAL)
    finally:
        os.umask(before)
    directories = [home.parent, home, *(path for path in home.rglob("*") if path.is_dir() and not path.is_symlink())]
    assert {path.stat().st_mode & 0o777 for path in directories} == {0o755}
    made = home.stat().st_ino
    assert spark_home.linked(tmp_path / "java", REAL) == home
    assert home.stat().st_ino == made
    assert names(tmp_path / "java") == [home.name]


def test_another_spark_has_another_and_one_that_leads_nowhere_goes(tmp_path):
    gone = tmp_path / "gone"
    first = spark_home.linked(tmp_path / "java", linked(gone))
    gone.rename(tmp_path / "moved")
    second = spark_home.linked(tmp_path / "java", REAL)
    assert names(tmp_path / "java") == [second.name] != [first.name]


@pytest.mark.parametrize(
    ("settings", "environ", "is_of_use"),
    [
        ({}, OURS, True),
        ({"spark.x": "y"}, OURS, True),
        ({"spark.pyspark.python": "/opt/python"}, OURS, False),
        ({"spark.pyspark.driver.python": "/opt/python"}, OURS, False),
        ({}, OURS | {"PYSPARK_PYTHON": "/opt/python"}, False),
        ({}, OURS | {"PYSPARK_DRIVER_PYTHON": "/opt/python"}, False),
    ],
)
def test_it_serves_the_python_that_the_package_belongs_to(settings, environ, is_of_use):
    assert spark_home.is_of_use(REAL, settings, environ) == is_of_use


def test_another_spark_than_this_pythons_own_stays_as_it_is(tmp_path):
    assert not spark_home.is_of_use(linked(tmp_path / "spark"), {}, OURS)

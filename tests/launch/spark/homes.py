"""Places where Spark and Java could be: some that only look like one, and some made of the real one's files."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

REAL = Path(importlib.util.find_spec("pyspark").origin).parent

WRITES = f"""#!{sys.executable}
import sys
for word in sys.argv[1:]:
    name, _, file = word.partition("=")
    if name in ("-XX:ArchiveClassesAtExit", "-XX:AOTCacheOutput"):
        open(file, "w").write("classes")
"""
"""A Java that writes the archive it is asked for, and nothing else."""


def java_script(home, script=WRITES, version=17):
    """A Java's image whose java is a script."""
    (home / "bin").mkdir(parents=True)
    (home / "lib" / "server").mkdir(parents=True)
    (home / "lib" / "server" / "classes.jsa").touch()
    (home / "release").write_text(f'JAVA_VERSION="{version}"\nMODULES="java.base"\n')
    (home / "bin" / "java").write_text(script)
    (home / "bin" / "java").chmod(0o755)
    return home


def pips(home, version="4.3.0"):
    """A directory laid out as pip does, with jars that are none."""
    (home / "jars").mkdir(parents=True)
    (home / "bin").mkdir()
    (home / "find_spark_home.py").touch()
    (home / "bin" / "spark-submit").touch()
    for name in ("spark-core_2.13", "slf4j-api"):
        (home / "jars" / f"{name}-{version if name.startswith('spark') else '2.0.17'}.jar").write_text(name)
    return home


def linked(home, leaving_out=()):
    """The real Spark under another name, file by file, without some; its directory of jars is one's own."""
    home.mkdir()
    for path in REAL.iterdir():
        if path.name not in ("jars", "bin", *leaving_out):
            (home / path.name).symlink_to(path)
    for inside in ("jars", "bin"):
        (home / inside).mkdir()
        for path in (REAL / inside).iterdir():
            (home / inside / path.name).symlink_to(path)
    return home

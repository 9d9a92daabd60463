"""The C library of the MQI: where it is, how it is built, and which other libraries of its name are on this machine.

Standard library alone: the wheel's build loads this file by its path, before anything of trigmon is installed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

SOURCES = Path(__file__).resolve().parent / "c"
INCLUDED = Path(__file__).resolve().parent / "lib"
"""Where a wheel that was built with a C compiler has the library."""
NAMES = ("libmqm_r.so", "libmqic_r.so")
"""IBM's names of the library for threads, of the server and of the client. Here both are the same."""
FLAGS = (
    *("-std=gnu11", "-O2", "-fPIC", "-shared", "-D_GNU_SOURCE", "-fvisibility=hidden"),
    *("-fstack-protector-strong", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2", "-Wl,-z,relro,-z,now", "-Wl,-z,defs"),
)
WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow")
_OF_MQ = ("/opt/mqm/lib64", "/opt/mqm/lib", "/usr/mqm/lib64")
_BUILD_S = 120


class BuildError(Exception):
    """The library cannot be built; the text says why and what helps."""


def compiler() -> str | None:
    """Returns the C compiler: ``$CC``, else the first of cc, gcc and clang on ``PATH``; None where there is none."""
    return next(filter(None, map(shutil.which, filter(None, (os.environ.get("CC"), "cc", "gcc", "clang")))), None)


def built_directory() -> Path:
    """Returns where :func:`build` puts the library by default: in the user's cache, by what its source files hold."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "trigmon" / "mqi" / fingerprint()


def fingerprint() -> str:
    """Returns what tells these source files, and how they are compiled, from others."""
    seen = hashlib.sha256(" ".join(FLAGS).encode())
    for path in sorted(SOURCES.glob("*.[ch]")):
        seen.update(path.name.encode() + b"\0" + path.read_bytes())
    return seen.hexdigest()[:16]


def find() -> Path | None:
    """Returns the directory that holds the library: the wheel's, else one built before; None where it is not built.

    Nothing is taken from the cache that another user made or may write to: a program would load it.
    """
    built = built_directory()
    if _is_whole(INCLUDED):
        return INCLUDED
    return built if _is_whole(built) and all(map(_is_own, (built, *(built / name for name in NAMES)))) else None


def _is_whole(place: Path) -> bool:
    return all((place / name).is_file() for name in NAMES)


def _is_own(path: Path) -> bool:
    found = path.stat()
    return found.st_uid in (0, os.geteuid()) and not found.st_mode & 0o022


def build(directory: Path, *more: str) -> Path:
    """Compiles the library into a directory, with more flags of the compiler, and returns the directory.

    Each file is moved to its place when it is whole. Raises BuildError, OSError.
    """
    found = compiler()
    if found is None:
        raise BuildError("there is no C compiler: install gcc (Debian: apt install gcc libc6-dev), or name one in CC")
    directory.mkdir(parents=True, exist_ok=True)
    if directory == built_directory():
        directory.chmod(0o755)  # whatever the umask is: what others may write to is not taken from there
    with tempfile.TemporaryDirectory(dir=directory) as beside:
        made = Path(beside) / NAMES[0]
        sources = map(str, sorted(SOURCES.glob("*.c")))
        argv = [found, *FLAGS, f"-Wl,-soname,{NAMES[0]}", *more, "-o", str(made), *sources, "-lpthread", "-ldl"]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=_BUILD_S)
        if done.returncode != 0:
            raise BuildError(f"{found} ended with {done.returncode}:\n{done.stderr.strip()[-2000:]}")
        for name in reversed(NAMES):  # the one that is linked to comes last
            shutil.copy2(made, Path(beside) / "whole")
            (Path(beside) / "whole").chmod(0o755)
            (Path(beside) / "whole").replace(directory / name)
    return directory


def others() -> list[Path]:
    """Returns the libraries of these names that a program could load and that are not ours: of a real MQ, mostly."""
    ours = {path.resolve() for path in (INCLUDED, built_directory())}
    named = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    directories = [Path(place) for place in (*named, *_OF_MQ) if place]
    found = [place / name for place in directories for name in NAMES if place.resolve() not in ours]
    return sorted({path for path in (*found, *_in_linker_cache()) if path.exists()})


def _in_linker_cache() -> list[Path]:
    """Returns the libraries of these names that ldconfig has in its cache; none where there is no such command."""
    command = shutil.which("ldconfig", path=os.pathsep.join((os.environ.get("PATH", ""), "/sbin", "/usr/sbin")))
    if command is None:
        return []
    done = subprocess.run([command, "-p"], capture_output=True, text=True, timeout=_BUILD_S)
    lines = (line.partition(" => ") for line in done.stdout.splitlines())
    return [Path(path) for name, _, path in lines if name.split() and name.split()[0] in NAMES]

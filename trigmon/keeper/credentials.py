"""A run's secrets as files of its own, there as long as it runs: ``runs/RUN/credentials/NAME``.

The program finds them by ``CREDENTIALS_DIRECTORY``, as one that systemd starts with LoadCredential= does. Only its user
may read them. Their values pass from file to file, through nothing that is listed, logged or written down.

Standard library only: the keeper imports it.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

DIRECTORY = "credentials"
VARIABLE = "CREDENTIALS_DIRECTORY"
LARGEST = 1 << 20
"""Bytes a secret may have, as systemd allows all credentials of a unit together."""


def put(run_directory: Path, secrets: Mapping[str, str], uid: int = -1, gid: int = -1) -> Path:
    """Copies the files ``secrets`` names, by name, for this user (-1: our own), and returns their directory.

    Raises OSError; then nothing of them is left.
    """
    directory = run_directory / DIRECTORY
    if uid >= 0:
        # That user has to pass through: names only, for nothing in there is anybody else's to read.
        for passed in (run_directory.parent, run_directory):
            passed.chmod(0o711)
    try:
        directory.mkdir(mode=0o700)
        with _opened(directory) as descriptor:
            for name, source in secrets.items():
                _copy(Path(source), name, descriptor, uid, gid)
            os.fchmod(descriptor, 0o500)
            os.fchown(descriptor, uid, gid)
    except BaseException:
        remove(run_directory)
        raise
    return directory


def remove(run_directory: Path) -> None:
    """Removes a run's secrets, where there are any. Raises OSError when it cannot."""
    directory = run_directory / DIRECTORY
    if not directory.is_dir() or directory.is_symlink():
        with suppress(FileNotFoundError):  # no directory of secrets: a program of our own user put it there
            directory.unlink()
        return
    # Where it is not ours, we have the right, or are root and need none.
    with suppress(OSError), _opened(directory, os.O_PATH) as descriptor:
        path = f"/proc/self/fd/{descriptor}"
        os.chown(path, os.geteuid(), -1)
        Path(path).chmod(0o700)
    shutil.rmtree(directory)


@contextmanager
def _opened(directory: Path, how: int = os.O_RDONLY) -> Iterator[int]:
    """Yields a directory's descriptor: what is done by it is done to no other, whatever takes its name meanwhile.

    A program of our own user may change names in a run's directory, and the right to give files away is ours alone.
    Raises OSError, also for a link.
    """
    descriptor = os.open(directory, how | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _copy(source: Path, name: str, directory: int, uid: int, gid: int) -> None:
    # No link is followed, and a pipe is not waited for: what was checked was a plain file.
    descriptor = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{source} is no plain file")
        value = file.read(LARGEST + 1)
    if len(value) > LARGEST:
        raise OSError(f"{source} is larger than a secret may be ({LARGEST} bytes)")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    made = os.open(name, flags, 0o400, dir_fd=directory)
    with os.fdopen(made, "wb") as file:
        file.write(value)
        os.fchown(made, uid, gid)

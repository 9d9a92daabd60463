"""Finds the file of a secret that a definition names (SECRETS), and checks that no other user can read it.

A definition, the ledger and every log hold only names. The value is a file: a credential that systemd gave the
monitor, or one in the directory of the setting ``monitor.secrets_directory``.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from trigmon.launch.launch_plan import LaunchError
from trigmon.rules.runs.check_program import secret_names


def found(text: str, directory: Path | None, environ: Mapping[str, str]) -> dict[str, str]:
    """Returns the files of the secrets that SECRETS names, by name.

    ``directory`` is the setting's; systemd's comes first. Raises LaunchError for one that is missing, or that others
    could read.
    """
    try:
        names = secret_names(text)
    except ValueError as error:
        raise LaunchError(f"SECRETS: {error}") from None
    return {name: str(_file(name, directory, environ)) for name in names}


def _file(name: str, directory: Path | None, environ: Mapping[str, str]) -> Path:
    looked_at = []
    for path, others in _places(name, directory, environ):
        looked_at.append(str(path))
        try:
            status = path.lstat()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise LaunchError(f"SECRETS({name}): {path} cannot be looked at: {error.strerror}") from None
        _check(name, path, status, others)
        return path
    where = f"there is no {' nor '.join(looked_at)}" if looked_at else "this monitor has no secrets"
    raise LaunchError(
        f"SECRETS({name}): {where}; give the monitor's unit LoadCredential={name}:/path/of/the/file, "
        f"or put a file {name} of mode 0600 into the directory of monitor.secrets_directory"
    )


def _places(name: str, directory: Path | None, environ: Mapping[str, str]) -> Iterator[tuple[Path, int]]:
    """Yields the paths at which a secret may lie, each with the mode bits that it must not have there.

    systemd lets a service's user read by an access list, which shows as the group's right to read.
    """
    if given := environ.get("CREDENTIALS_DIRECTORY"):
        yield Path(given, name), stat.S_IRWXO | stat.S_IWGRP
    if directory is not None:
        yield directory / name, stat.S_IRWXO | stat.S_IRWXG


def _check(name: str, path: Path, status: os.stat_result, others: int) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise LaunchError(f"SECRETS({name}): {path} is no plain file (a link is none: it leads out of its directory)")
    if status.st_uid not in (0, os.geteuid()):
        raise LaunchError(f"SECRETS({name}): {path} belongs to user {status.st_uid}, not to root or the monitor's user")
    if status.st_mode & others:
        raise LaunchError(f"SECRETS({name}): others may read {path} (chmod 600 {path})")
    if not os.access(path, os.R_OK, effective_ids=True):
        raise LaunchError(f"SECRETS({name}): the monitor's user may not read {path}")

"""The accounts of those who come by TLS: a file of YAML that only the daemon's user may read.

    - user: alice
      certificates: ["CN=alice"]           # subjects, or sha256:FINGERPRINT
    - user: batch
      password: scrypt:32768:8:1:SALT:HASH
      groups: [loaders]

A user who is not in the file does not come in, whatever the certificate.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from trigmon import yaml12
from trigmon.tls.contexts import TlsFileError
from trigmon.tls.passwords import is_hash

_KEYS = ("user", "password", "certificates", "groups")
LONGEST_NAME = 64
_NAME = re.compile(rf"[A-Za-z_][A-Za-z0-9_.@-]{{0,{LONGEST_NAME - 1}}}")
_FINGERPRINT = re.compile(r"sha256:[0-9a-f]{64}")
_SHORT = {"commonName": "CN", "organizationName": "O", "organizationalUnitName": "OU", "countryName": "C"}
_SHORT |= {"stateOrProvinceName": "ST", "localityName": "L", "domainComponent": "DC", "emailAddress": "emailAddress"}
Certificate = Mapping[str, Any]
"""A verified certificate as :meth:`ssl.SSLSocket.getpeercert` gives it."""


class Account(NamedTuple):
    """A user who may come by TLS: by one of these certificates, or by a password whose hash this is."""

    user: str
    password: str = ""
    certificates: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()


class Accounts:
    """The accounts of a file."""

    def __init__(self, accounts: Iterable[Account] = ()) -> None:
        self.by_user = {account.user: account for account in accounts}
        self._by_certificate = {name: a for a in self.by_user.values() for name in a.certificates}

    def of_certificate(self, certificate: Certificate, der: bytes) -> Account | None:
        """Returns the account that a verified certificate is for; by its fingerprint before its subject."""
        names = (fingerprint(der), subject(certificate))
        return next((self._by_certificate[name] for name in names if name in self._by_certificate), None)


def subject(certificate: Certificate) -> str:
    """Returns the subject of a certificate as the file has it: ``CN=alice,O=Example``, in the certificate's order."""
    pairs = [pair for part in certificate.get("subject", ()) for pair in part]
    return ",".join(f"{_SHORT.get(name, name)}={_escaped(value)}" for name, value in pairs)


def fingerprint(der: bytes) -> str:
    """Returns ``sha256:`` and the hash of a certificate."""
    return f"sha256:{hashlib.sha256(der).hexdigest()}"


def _escaped(value: str) -> str:
    return re.sub(r"([,=\\+])", r"\\\1", value)


def read(path: Path) -> Accounts:
    """Returns the accounts of a file. Raises TlsFileError for one that others may read, or that is not understood."""
    try:
        found = path.stat()
        owners = (0, os.geteuid(), path.parent.stat().st_uid)
        if found.st_uid not in owners or stat.S_IMODE(found.st_mode) & 0o077:
            raise TlsFileError(f"{path}: it has hashes of passwords, so only its owner may read it: chmod 600 {path}")
        document = yaml12.read(path)
    except OSError as error:
        raise TlsFileError(f"{path}: {error.strerror}") from None
    except yaml12.YamlError as error:
        raise TlsFileError(str(error)) from None
    if document.value is None:
        raise TlsFileError(f"{path}: it is empty, as one that is not yet written; [] stands for no user")
    return Accounts(_checked(path, document.value))


def check(path: Path, accounts: Sequence[Account]) -> None:
    """Raises TlsFileError where the file could not be read with these accounts."""
    _checked(path, _entries(accounts))


def _checked(path: Path, entries: object) -> list[Account]:
    if not isinstance(entries, list):
        raise TlsFileError(f"{path}: it is a list of users, each with {', '.join(_KEYS)}")
    accounts = [_account(entry, f"{path}, entry {at}") for at, entry in enumerate(entries, 1)]
    for what in ([a.user for a in accounts], [name for a in accounts for name in a.certificates]):
        if twice := next((name for name in what if what.count(name) > 1), None):
            raise TlsFileError(f"{path}: {twice} is there twice")
    return accounts


def _account(entry: object, where: str) -> Account:
    if not isinstance(entry, dict) or not entry.keys() <= set(_KEYS):
        raise TlsFileError(f"{where}: a user has {', '.join(_KEYS)}, and nothing else")
    account = Account(
        str(entry.get("user", "")),
        str(entry.get("password") or ""),
        _texts(entry.get("certificates"), where),
        _texts(entry.get("groups"), where),
    )
    if not _NAME.fullmatch(account.user):
        raise TlsFileError(f"{where}: {account.user!r} is no user's name: letters, digits and _ . @ -, 64 at most")
    if account.password and not is_hash(account.password):
        raise TlsFileError(f"{where}: the password of {account.user} is no hash: trigmon tls user {account.user}")
    for name in account.certificates:
        if "=" not in name and not _FINGERPRINT.fullmatch(name):
            raise TlsFileError(f"{where}: {name!r} is neither a subject, as CN=alice, nor sha256: and 64 digits")
    return account


def _texts(value: object, where: str) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise TlsFileError(f"{where}: certificates and groups are lists of texts")
    return tuple(value)


def _entries(accounts: Sequence[Account]) -> list[dict[str, object]]:
    entries: list[dict[str, object]] = []
    for account in accounts:
        fields = {"certificates": list(account.certificates), "groups": list(account.groups)}
        given = {"password": account.password, **fields}
        entries.append({"user": account.user} | {key: value for key, value in given.items() if value})
    return entries


def write(path: Path, accounts: Sequence[Account]) -> None:
    """Writes the file anew, in one step, readable by its owner alone. An existing file keeps its owner.

    Raises TlsFileError for accounts with which it could not be read.
    """
    check(path, accounts)
    entries = _entries(accounts)
    # Quoted: YAML 1.1, which writes, and 1.2, which reads, differ in what is a number.
    text = yaml.safe_dump(entries, default_style='"', allow_unicode=True, sort_keys=False)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w") as file:
            file.write(f"# Users who may come by TLS (trigmon tls user). Read anew when it changes.\n{text}")
            file.flush()
            os.fsync(file.fileno())
        if path.exists() and os.geteuid() == 0:
            os.chown(name, path.stat().st_uid, path.stat().st_gid)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise

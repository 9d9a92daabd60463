"""The page of a Spark driver, closed to everybody who does not show a token.

It tells environment, plans and thread dumps to whoever reaches it, and every user of this machine does. Spark's own
JWSFilter asks for a JSON web signature (RFC 7515) by a key; the key reaches Spark in a file of properties that only its
user may read, for everybody may read a command's words.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import secrets
from collections.abc import Mapping
from pathlib import Path

FILTER = "org.apache.spark.ui.JWSFilter"
_HEADER = b'{"alg":"HS256"}'
_KEY_SETTING = f"spark.{FILTER}.param.secretKey"


def new_key() -> str:
    """A key for one driver's page."""
    return _encoded(secrets.token_bytes(32))


def properties(key: str) -> str:
    """The file that closes a page with this key."""
    return f"spark.ui.filters={FILTER}\n{_KEY_SETTING}={key}\n"


def headers(key: str) -> Mapping[str, str]:
    """What is shown to a page with this key; nothing for a page that has none."""
    if not key:
        return {}
    signed = f"{_encoded(_HEADER)}.{_encoded(b'{}')}"
    raw = base64.urlsafe_b64decode(key + "=" * (-len(key) % 4))
    return {"Authorization": f"Bearer {signed}.{_encoded(hmac.digest(raw, signed.encode(), hashlib.sha256))}"}


def write(path: Path, key: str) -> None:
    """Writes the file of properties for its owner's eyes alone. Raises OSError."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w") as file:
        os.fchmod(descriptor, 0o600)
        file.write(properties(key))


def options(path: Path | str, conf_directory: Path) -> list[str]:
    """The words by which SparkSubmit reads the file, beside the settings of a conf directory where it has some."""
    has_more = (conf_directory / "spark-defaults.conf").is_file()
    return ["--properties-file", str(path), *(["--load-spark-defaults"] if has_more else [])]


def _encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()

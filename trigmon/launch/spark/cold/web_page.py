"""Authentication of a Spark driver's web page by a token.

The page shows environment, plans and thread dumps to every client, and every user of this machine can connect to it.
Spark's JWSFilter asks for a JSON web signature (RFC 7515) by a key. Spark gets the key in a file of properties that
only its user may read, since every user may read a command line.
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
    """Returns a key for one driver's page."""
    return _encoded(secrets.token_bytes(32))


def properties(key: str) -> str:
    """Returns the content of the file of properties for this key."""
    return f"spark.ui.filters={FILTER}\n{_KEY_SETTING}={key}\n"


def headers(key: str) -> Mapping[str, str]:
    """Returns the HTTP headers for a page with this key; none for a page without a key."""
    if not key:
        return {}
    signed = f"{_encoded(_HEADER)}.{_encoded(b'{}')}"
    raw = base64.urlsafe_b64decode(key + "=" * (-len(key) % 4))
    return {"Authorization": f"Bearer {signed}.{_encoded(hmac.digest(raw, signed.encode(), hashlib.sha256))}"}


def write(path: Path, key: str) -> None:
    """Writes the file of properties, readable for its owner only. Raises OSError."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(properties(key))
    beside.replace(path)


def kept(path: Path) -> str:
    """Returns the key in the file of properties; makes the file where there is none. Raises OSError."""
    if not (key := key_in(path)):
        key = new_key()
        write(path, key)
    return key


def key_in(path: Path) -> str:
    """Returns the key in a file of properties; "" where there is none."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return ""
    return next((line.partition("=")[2] for line in lines if line.startswith(f"{_KEY_SETTING}=")), "")


def options(path: Path, home: Path, environ: Mapping[str, str]) -> list[str]:
    """Returns the options by which SparkSubmit reads the file, and the settings of a conf directory if there are some.

    None for a Spark before 4.0, which has no such filter: then the page is open to the users of this machine.
    """
    if not any((home / "jars").glob("jjwt-impl-*.jar")):
        return []
    has_more = Path(environ.get("SPARK_CONF_DIR") or home / "conf", "spark-defaults.conf").is_file()
    return ["--properties-file", str(path.absolute()), *(["--load-spark-defaults"] if has_more else [])]


def _encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()

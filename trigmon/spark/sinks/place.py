"""A place for the files of a table: a directory of this machine's file systems, or an object store.

``s3://``, ``gs://``, ``az://`` and the like are reached by ``obstore`` (extra ``objects``), whose options are those of
Delta's: ``aws_endpoint_url``, ``aws_region``, ... Tasks get a place pickled, so it needs no jar and no Hadoop.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast
from urllib.parse import unquote, urlsplit

from trigmon.spark.sinks.sink import SinkError

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/|[^/\s]+://")
"""A scheme and a slash, since a Path makes one of two; or anything with two, of which a wrong scheme is refused."""

DELTA_LOG = "_delta_log"
"""The directory of a Delta table's log, within the table's."""


class Place(Protocol):
    """What a table's files need of the place. Paths are relative to it, with ``/`` between their names."""

    def open(self, path: str) -> BinaryIO:
        """Returns a new file to write; it is durable when it is closed."""

    def put_new(self, path: str, data: bytes) -> bool:
        """Writes a whole file durably, in one step. Returns False for one that is there, which stays as it is."""

    def get(self, path: str) -> bytes | None:
        """Returns the content of a file, None where there is none."""

    def names(self, prefix: str) -> list[str]:
        """Returns the paths of the files below a directory."""

    def delete(self, path: str) -> None:
        """Deletes a file that may be gone already."""


def is_url(table: str | Path) -> bool:
    """Returns whether a table is named by a URL, and not by a path."""
    return _URL.match(str(table)) is not None


def place_of(url: str | Path, options: Mapping[str, str] | None = None) -> Place:
    """Returns the place of a path or URL. Raises SinkError where the extra is missing or an option is unknown."""
    text = str(url)
    if not is_url(text):
        return Directory(text)
    parts = urlsplit(text)
    return Directory(unquote(parts.path)) if parts.scheme == "file" else _Objects(text, dict(options or {}))


class Directory:
    """A directory of a file system. What is written is forced to the disk."""

    def __init__(self, root: str) -> None:
        self._root = Path(root).absolute()

    def open(self, path: str) -> BinaryIO:
        """Returns a new file to write; it is durable when it is closed."""
        where = self._root / path
        made = [above for above in where.parents if not above.exists()]
        where.parent.mkdir(parents=True, exist_ok=True)
        for above in made:
            force(above.parent)
        return _DurableFile(where)

    def put_new(self, path: str, data: bytes) -> bool:
        """Writes a file under a name of its own and links it to its place: a link replaces nothing."""
        final = self._root / path
        if final.exists():
            return False
        staged = final.with_name(f".{final.name}.{os.urandom(4).hex()}")
        with self.open(str(staged)) as file:
            file.write(data)
        try:
            os.link(staged, final)
        except FileExistsError:
            return False
        finally:
            staged.unlink()
        force(final.parent)
        return True

    def get(self, path: str) -> bytes | None:
        """Returns the content of a file, None where there is none."""
        with suppress(FileNotFoundError):
            return (self._root / path).read_bytes()
        return None

    def names(self, prefix: str) -> list[str]:
        """Returns the paths of the files below a directory."""
        found = (self._root / prefix).rglob("*")
        return sorted(str(path.relative_to(self._root)) for path in found if path.is_file())

    def delete(self, path: str) -> None:
        """Deletes a file, and its directories up to the place as far as they are empty then."""
        where = self._root / path
        where.unlink(missing_ok=True)
        with suppress(OSError):
            while (where := where.parent) != self._root:
                where.rmdir()


class _DurableFile(io.FileIO):
    def __init__(self, path: Path) -> None:
        super().__init__(path, "xb")
        self._directory = path.parent

    def close(self) -> None:
        if not self.closed:
            os.fsync(self.fileno())
            force(self._directory)
        super().close()


def force(path: Path) -> None:
    """Forces a file, or a directory's entries, to the disk (fsync)."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class _Objects:
    """A prefix of an object store that has conditional writes, as S3, Google's and Azure's have."""

    def __init__(self, url: str, options: dict[str, str]) -> None:
        try:
            from obstore.exceptions import BaseError
            from obstore.store import from_url
        except ImportError:
            raise SinkError(f"{url} is written by the package obstore: pip install 'trigmon[objects]'") from None
        of_client = {"allow_http": True} if _is_http(options) else {}
        config = {name.lower(): value for name, value in options.items() if not name.lower().endswith("allow_http")}
        try:
            self._store: Any = from_url(url, config=config, client_options=of_client)
        except (BaseError, ValueError) as error:
            raise SinkError(f"{url}: {str(error).splitlines()[0]}") from None

    def open(self, path: str) -> BinaryIO:
        """Returns a new object to write; it is there when it is closed."""
        return cast(BinaryIO, _ObjectFile(self._store, path))

    def put_new(self, path: str, data: bytes) -> bool:
        """Writes an object on the condition that there is none of its name."""
        import obstore

        with suppress(obstore.exceptions.AlreadyExistsError):
            obstore.put(self._store, path, data, mode="create")
            return True
        return False

    def get(self, path: str) -> bytes | None:
        """Returns the content of an object, None where there is none."""
        import obstore

        with suppress(FileNotFoundError):
            return bytes(obstore.get(self._store, path).bytes())
        return None

    def names(self, prefix: str) -> list[str]:
        """Returns the paths of the objects below a prefix."""
        import obstore

        return sorted(found["path"] for page in obstore.list(self._store, prefix) for found in page)

    def delete(self, path: str) -> None:
        """Deletes an object."""
        import obstore

        with suppress(FileNotFoundError):
            obstore.delete(self._store, path)


class _ObjectFile(io.RawIOBase):
    """A writer of obstore with the methods of a file that pyarrow asks for."""

    def __init__(self, store: Any, path: str) -> None:
        import obstore

        self._writer = obstore.open_writer(store, path)

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return int(self._writer.write(data))

    def close(self) -> None:
        if not self.closed:
            self._writer.close()
        super().close()


def _is_http(options: Mapping[str, str]) -> bool:
    return any(name.lower().endswith("allow_http") and str(value).lower() == "true" for name, value in options.items())

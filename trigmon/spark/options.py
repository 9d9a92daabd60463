"""What a user says of a read or a write by Spark's options, read once into one value."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import NamedTuple

from trigmon import paths
from trigmon.client.address import connect, default_address
from trigmon.client.connection import Connection
from trigmon.mq.names import is_object_name

MAX_ROWS = 10_000
"""Messages a batch of a stream or a drain, where nothing else is said."""
MAX_BYTES = 1 << 30
_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0", "")


class OptionError(ValueError):
    """An option that cannot be meant. The text names it."""


class Options(NamedTuple):
    """The options of ``format("trigmon")``; every one may be written in any case.

    ``queue`` (or the argument of ``load`` and ``save``); ``qmgr``, a name, or ``address``, ``unix:/path`` or
    ``tcp://host:port`` (default: as :func:`trigmon.connect`); ``maxRows`` and ``maxBytes`` a batch; ``groups``: groups
    come whole, all messages of one in one batch; ``partitions`` of a batch; ``columns``, comma-separated, where not all
    are wanted; ``format`` raw or json; ``consumer``: the name by which a stream finds its reservation again, of one
    query alone; ``reservation``: the number of one to read instead of browsing, and ``ordinals``, which of it
    (``from-behind``); ``staging``: the directory for what tasks of a large write lay aside, which the driver must see
    too (default: the user's own below the temporary one);
    ``run``: the run it is done for (default: ``$TRIGMON_RUN``, which the server of a Spark Connect session has not).
    """

    queue: str
    address: str
    run_id: str
    is_json: bool = False
    columns: tuple[str, ...] = ()
    max_rows: int = 0
    max_bytes: int = MAX_BYTES
    first_rows: int = 0
    groups: bool = False
    partitions: int = 0
    consumer: str = ""
    reservation: int = 0
    ordinals: tuple[int, int] | None = None
    staging: str = ""

    def connect(self, what: str) -> Connection:
        """A connection for ``what`` is done. Raises MQError."""
        return connect(self.address, application=f"spark {what}", run_id=self.run_id)


def read(given: Mapping[str, str]) -> Options:
    """The options as a value. Raises OptionError, MQError where no queue manager is found to be meant."""
    said = {name.lower(): value for name, value in given.items()}
    queue = said.get("queue") or said.get("path", "")
    if not is_object_name(queue):
        raise OptionError(f"option queue: {queue!r} is no queue's name")
    form = said.get("format", "raw").lower()
    if form not in ("raw", "json"):
        raise OptionError(f"option format is raw or json, not {form!r}")
    return Options(
        queue=queue,
        address=concrete(said.get("address") or said.get("qmgr") or default_address()),
        run_id=said.get("run") or os.environ.get("TRIGMON_RUN", ""),
        is_json=form == "json",
        columns=tuple(re.findall(r"[^,\s]+", said.get("columns", ""))),
        max_rows=_number(said, "maxrows", 0),
        max_bytes=_number(said, "maxbytes", MAX_BYTES),
        first_rows=_number(said, "firstrows", 0),
        groups=_flag(said, "groups"),
        partitions=_number(said, "partitions", 0),
        consumer=said.get("consumer") or f"spark {queue}",
        reservation=_number(said, "reservation", 0),
        ordinals=_stretch(said.get("ordinals", "")),
        staging=said.get("staging", ""),
    )


def concrete(where: str) -> str:
    """The address, so that it means the same in a worker that has not this process's environment."""
    return where if ":" in where else f"unix:{paths.find_socket(where)}"


def _number(said: Mapping[str, str], name: str, default: int) -> int:
    text = said.get(name, "")
    if text and (not text.isdecimal() or not int(text)):
        raise OptionError(f"option {name} is a whole number from 1, not {text!r}")
    return int(text) if text else default


def _stretch(text: str) -> tuple[int, int] | None:
    found = re.fullmatch(r"(\d+)-(\d+)", text)
    if text and not found:
        raise OptionError(f"option ordinals is two whole numbers with - between them, not {text!r}")
    return (int(found[1]), int(found[2])) if found else None


def _flag(said: Mapping[str, str], name: str) -> bool:
    text = said.get(name, "").lower()
    if text not in _TRUE + _FALSE:
        raise OptionError(f"option {name} is true or false, not {text!r}")
    return text in _TRUE

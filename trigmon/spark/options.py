"""The options of ``format("trigmon")``, parsed into one value."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping
from typing import NamedTuple

from trigmon import paths
from trigmon.client.address import connect, default_address, resolved
from trigmon.client.connection import Connection
from trigmon.mq.names import is_object_name
from trigmon.spark.arrow_rows import FAILFAST, MODES, Malformed

MAX_ROWS = 50_000
"""Messages in a batch of a stream or a drain, by default."""
MAX_BYTES = 1 << 30
TASK_ADDRESS = "TRIGMON_TASK_ADDRESS"
KNOWN = (
    *("queue", "path", "qmgr", "address", "maxRows", "maxOffsetsPerTrigger", "maxBytes", "groups", "partitions"),
    *("minPartitions", "columns", "format", "mode", "columnNameOfCorruptRecord", "consumer", "reservation", "ordinals"),
    *("staging", "run", "firstRows", "secret", "taskAddress"),
)
"""Every option, as it is written; :class:`Options` says what each means."""
SHOWN = tuple(name for name in KNOWN if name not in ("firstRows", "secret"))
"""Those that are for users; ``drain`` alone gives the others."""
_OF_SPARK = frozenset(("checkpointlocation", "queryname", "outputmode", "provider", "owner", "location", "comment"))
"""What Spark itself passes, of a stream and of a table's creation."""
_TABLE = "option."
"""Begins the name of an option that ``CREATE TABLE ... OPTIONS`` gave."""
_NOT_OF_A_QUEUE = {
    "startingoffsets": "a queue has no history: what is there is read from its first message on",
    "endingoffsets": "a queue has no offsets: maxRows ends a batch read",
    "failondataloss": "what was reserved is never lost, and a checkpoint that does not belong is always refused",
    "subscribe": "a stream reads one queue: option queue",
    "topic": "a queue is named by the option queue",
    "assign": "a stream reads one queue: option queue",
    "minoffsetspertrigger": "a stream's batch is what is there: maxOffsetsPerTrigger limits it",
    "includeheaders": "name the column headers in the option columns",
}
"""Options of Spark's Kafka source that a queue has no meaning for."""
_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0", "")


class OptionError(ValueError):
    """An option with an impossible value. The text names it."""


class Options(NamedTuple):
    """The options of ``format("trigmon")``; every one may be written in any case, and any other is refused.

    ``queue`` (or the argument of ``load`` and ``save``); ``qmgr``, a name, or ``address``, ``unix:/path`` or
    ``tcp://host:port`` (default: as :func:`trigmon.connect`); ``maxRows`` and ``maxBytes`` of a batch, with
    ``maxOffsetsPerTrigger`` as another name of ``maxRows``; ``groups``: all messages of a group in one batch;
    ``partitions`` of a batch, or at least ``minPartitions``; ``columns``, comma-separated (default: all);
    ``format`` raw or json; ``mode`` of format json, what becomes of a message that is no object of the schema: FAILFAST
    (the default; ``drain`` sets such messages aside), DROPMALFORMED, or PERMISSIVE, with the text in the column
    ``columnNameOfCorruptRecord`` (default: ``_corrupt_record``); ``consumer``: the name by which a stream finds its
    reservation again, of one query alone; ``reservation``: the number of one to read instead of browsing, and
    ``ordinals``, which of its messages (``first-end``, without the end); ``staging``: the directory for messages of a
    large write, which the driver must see too (default: the user's own below the temporary one); ``run``: the run that
    the connection belongs to (default: ``$TRIGMON_RUN``, which the server of a Spark Connect session does not have);
    ``taskAddress``: a ``tls://`` address by which tasks on other machines read what is reserved, each by the
    reservation's ticket (default: ``$TRIGMON_TASK_ADDRESS``, else ``address`` where that is one of TLS).
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
    min_partitions: int = 0
    consumer: str = ""
    reservation: int = 0
    ordinals: tuple[int, int] | None = None
    staging: str = ""
    malformed: Malformed = FAILFAST
    secret: str = ""
    task_address: str = ""

    def connect(self, what: str) -> Connection:
        """Connects and returns the connection; ``what`` is a part of the application's name. Raises MQError."""
        return connect(self.address, application=f"spark {what}", run_id=self.run_id)


def read(given: Mapping[str, str]) -> Options:
    """Returns the options as a value. Raises OptionError, and MQError where no queue manager is found."""
    options = _known(given)
    queue = _queue(options)
    form = options.get("format", "raw").lower()
    if form not in ("raw", "json"):
        raise OptionError(f"option format is raw or json, not {form!r}")
    _refuse_without_effect(options, form)
    return Options(
        queue=queue,
        address=concrete(options.get("address") or options.get("qmgr") or default_address()),
        run_id=options.get("run") or os.environ.get("TRIGMON_RUN", ""),
        is_json=form == "json",
        columns=tuple(re.findall(r"[^,\s]+", options.get("columns", ""))),
        max_rows=_one_of(options, "maxRows", "maxOffsetsPerTrigger"),
        max_bytes=_number(options, "maxbytes", MAX_BYTES),
        first_rows=_number(options, "firstrows", 0),
        groups=_flag(options, "groups"),
        partitions=_number(options, "partitions", 0),
        min_partitions=_number(options, "minpartitions", 0),
        consumer=options.get("consumer") or f"spark {queue}",
        reservation=_number(options, "reservation", 0),
        ordinals=_stretch(options.get("ordinals", "")),
        staging=options.get("staging", ""),
        malformed=_malformed(options),
        secret=options.get("secret", ""),
        task_address=_of_tasks(options.get("taskaddress") or os.environ.get(TASK_ADDRESS, "")),
    )


def of_table(given: Mapping[str, str]) -> dict[str, str]:
    """Returns the options that ``CREATE TABLE`` names; nothing where no table is created.

    Spark 4.3 gives a table's options to the schema alone, and to no reader or writer.
    """
    named = {key.lower(): value for key, value in given.items()}
    if "provider" not in named:
        return {}
    plain = {key: value for key, value in named.items() if key in {known.lower() for known in KNOWN}}
    return plain | {key.removeprefix(_TABLE): value for key, value in named.items() if key.startswith(_TABLE)}


def _known(given: Mapping[str, str]) -> dict[str, str]:
    """Returns the options by their names in lower case. Raises OptionError for one that there is not."""
    options = {name.lower(): value for name, value in given.items()}
    options = of_table(options) or options
    by_name = {name.lower(): name for name in KNOWN}
    for name in options.keys() - by_name.keys() - _OF_SPARK:
        if name in _NOT_OF_A_QUEUE:
            raise OptionError(f"option {name}: {_NOT_OF_A_QUEUE[name]}")
        near = difflib.get_close_matches(name, [shown.lower() for shown in SHOWN], n=1)
        meant = f": is {by_name[near[0]]} meant?" if near else f"; there are {', '.join(SHOWN)}"
        raise OptionError(f"there is no option {name}{meant}")
    return options


def _queue(options: Mapping[str, str]) -> str:
    queue, path = options.get("queue", ""), options.get("path", "")
    if queue and is_object_name(path) and queue != path:  # the LOCATION of a table is no queue's name
        raise OptionError(f"two queues are named, {queue} by the option queue and {path} by the argument: name one")
    if not is_object_name(queue or path):
        raise OptionError(f"option queue: {queue or path!r} is no queue's name")
    return queue or path


def _refuse_without_effect(options: Mapping[str, str], form: str) -> None:
    """Raises OptionError for an option that would mean nothing beside the others."""
    if form == "json" and "columns" in options:
        raise OptionError("option columns is for format raw: the schema names the columns of format json")
    if form == "raw" and "mode" in options:
        raise OptionError("option mode is for format json: any bytes are a row of format raw")
    if form == "raw" and "columnnameofcorruptrecord" in options:
        raise OptionError("option columnNameOfCorruptRecord is for format json: any bytes are a row of format raw")
    if "partitions" in options and "minpartitions" in options:
        raise OptionError("partitions is the number of parts, minPartitions the least: name one of them")
    if "ordinals" in options and "reservation" not in options:
        raise OptionError("option ordinals is for a reservation, whose number the option reservation names")


def _one_of(options: Mapping[str, str], name: str, other: str) -> int:
    """Returns the number of an option that has two names. Raises OptionError where they differ."""
    first, second = (_number(options, each.lower(), 0) for each in (name, other))
    if first and second and first != second:
        raise OptionError(f"{name} and {other} are one option, and have two values: {first} and {second}")
    return first or second


def _malformed(options: Mapping[str, str]) -> Malformed:
    mode = options.get("mode", FAILFAST.mode).upper()
    if mode not in MODES:
        raise OptionError(f"option mode is one of {', '.join(MODES)}, not {options['mode']!r}")
    return Malformed(mode, options.get("columnnameofcorruptrecord", FAILFAST.column))


def concrete(where: str) -> str:
    """Returns the address in a form that does not depend on this process's environment and files, for workers."""
    return ",".join(one if ":" in one else f"unix:{paths.find_socket(one)}" for one in resolved(where))


def _of_tasks(where: str) -> str:
    """Returns the addresses that are for tasks. Raises OptionError for those that no ticket is for."""
    addresses = resolved(where)
    if wrong := [one for one in addresses if not one.startswith("tls:")]:
        raise OptionError(f"option taskAddress is tls://host:port/NAME?authority=FILE, not {wrong[0]!r}")
    return ",".join(addresses)


def _number(options: Mapping[str, str], name: str, default: int) -> int:
    text = options.get(name, "")
    if text and (not text.isdecimal() or not int(text)):
        raise OptionError(f"option {name} is a whole number from 1, not {text!r}")
    return int(text) if text else default


def _stretch(text: str) -> tuple[int, int] | None:
    found = re.fullmatch(r"(\d+)-(\d+)", text)
    if text and not found:
        raise OptionError(f"option ordinals is two whole numbers with - between them, not {text!r}")
    return (int(found[1]), int(found[2])) if found else None


def _flag(options: Mapping[str, str], name: str) -> bool:
    text = options.get(name, "").lower()
    if text not in _TRUE + _FALSE:
        raise OptionError(f"option {name} is true or false, not {text!r}")
    return text in _TRUE

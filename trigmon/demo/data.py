"""The demo's input, as it lies in the package (PROVENANCE.md says where it comes from)."""

from __future__ import annotations

import csv
import gzip
from importlib.resources import files

_HERE = files("trigmon.demo")


def flights() -> list[bytes]:
    """The flights of 1 January 2013 from New York, a JSON object each, in the order of their departure."""
    return gzip.decompress((_HERE / "flights-2013-01-01.jsonl.gz").read_bytes()).splitlines()


def airlines() -> dict[str, str]:
    """Carrier code to the carrier's name."""
    lines = (_HERE / "airlines.csv").read_text().splitlines()
    return {row["carrier"]: row["name"] for row in csv.DictReader(lines)}

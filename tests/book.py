"""The scenario book and the seed's sentences, for every test that holds something against them."""

from __future__ import annotations

import re
from pathlib import Path

from trigmon.simulate.reading import read_files

FOLDER = Path(__file__).parent / "scenarios"
_ROWS = re.findall(r"^\| ([^|]+?) \| [^|]+? \| ([^|]*?) ?\|$", (FOLDER / "SENTENCES.md").read_text(), re.M)[1:]
PLACES = dict(_ROWS)
"""Each place of seed 001, in its order, with what it is owed with; empty where it has its scenario."""
assert len(PLACES) == len(_ROWS), "a place stands twice in SENTENCES.md"

PAGES = sorted(FOLDER.glob("*.yaml"))
BOOK = [(page.stem, scenario) for page in PAGES for scenario in read_files([str(page)])]
"""Every scenario, with the page it stands on."""


def places_of(source: str) -> list[str]:
    """The places of seed 001 that a scenario's source names."""
    parts = [part.removeprefix("seed 001: ") for part in source.split("; ") if part.startswith("seed 001")]
    return [place for part in parts for place in part.split(", ")]

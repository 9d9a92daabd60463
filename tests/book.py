"""The scenario book and the seeds' sentences, for every test that holds something against them."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from pathlib import Path

from tests.postgres import shared
from trigmon.simulate.in_process import InProcess
from trigmon.simulate.scenario_files import read_files
from trigmon.simulate.scenario_stores import InSchema

FOLDER = Path(__file__).parent / "scenarios"


def _places(list_of: Path) -> dict[str, str]:
    rows = re.findall(r"^\| ([^|]+?) \| [^|]+? \| ([^|]*?) ?\|$", list_of.read_text(), re.M)[1:]
    places = dict(rows)
    assert len(places) == len(rows), f"a place stands twice in {list_of.name}"
    return places


SEEDS = {
    f"seed {list_of.stem.removeprefix('SENTENCES_')}": _places(list_of)
    for list_of in sorted(FOLDER.glob("SENTENCES_*.md"))
}
"""By seed each of its places, in its order, with what it is owed with; empty where it has its scenario."""
PLACES = SEEDS["seed 001"]

PAGES = sorted(FOLDER.glob("*.yaml"))
BOOK = [(page.stem, scenario) for page in PAGES for scenario in read_files([str(page)])]
"""Every scenario, with the page it stands on."""


def places_of(source: str, seed: str = "seed 001") -> list[str]:
    """Returns the places of a seed that a scenario's source names."""
    parts = [part.removeprefix(f"{seed}: ") for part in source.split("; ") if part.startswith(seed)]
    return [place for part in parts for place in part.split(", ")]


@functools.cache
def _schema(_number: int) -> InSchema:
    return InSchema(shared().dsn)


def stage(q_mgrs: Sequence[str], store: str) -> InProcess:
    """Yields the stage of a scenario; on PostgreSQL all use the same schemas, one after the other."""
    on_postgres = [_schema(number) for number in range(len(q_mgrs))] if store == "postgres" else []
    return InProcess(q_mgrs, on_postgres or store)

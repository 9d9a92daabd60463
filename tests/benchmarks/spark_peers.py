"""Rates of a drain, and times to the first row of a job, each beside its peers, in one run: a table and a picture."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from tests.benchmarks import first_row
from tests.benchmarks.draining import draining, ways
from tests.benchmarks.measuring import in_turns
from tests.benchmarks.spark_picture import Panel, drawn, table


def measured(directory: Path, rounds: int, count: int, picture: Path | None, *, quick: bool = False) -> None:
    """Measures, prints the table, and draws the picture where one is asked for."""
    before = os.getloadavg()[0]
    with draining(directory, count) as it:
        rates = in_turns(rounds, ways(it), "rows/s")
    loop = "single gets and pyarrow"
    title = f"{count:,} messages of 1 KiB into Parquet"
    panels = [Panel(title, rates, loop, [name for name in rates if name not in (loop, "made-up rows")])]
    for job, figures in first_row.measured(directory, rounds, quick=quick).items():
        ours = [name for name in figures if name != first_row.PLAIN]
        panels.append(Panel(f"from a put to the first row: {job}", figures, first_row.PLAIN, ours))
    caption = (
        f"{os.cpu_count()} cores ({platform.machine()}), load {before:.1f} before and {os.getloadavg()[0]:.1f} behind, "
        f"medians of {rounds} rounds"
    )
    print(f"\n{table(panels)}\n\n{caption}", flush=True)
    if picture is not None:
        picture.write_text(drawn(panels, caption))
        print(f"drawn: {picture}", flush=True)

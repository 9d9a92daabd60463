"""What was measured, as tables, as JSON and as a picture."""

from __future__ import annotations

import importlib.util
import os
import platform
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks.peers.comparison import Figures
from tests.benchmarks.peers.on_trigmon import Trigmon
from tests.benchmarks.peers.turn_of_clients import OPERATIONS, Turn

OURS = Trigmon.name
HEAD = (
    f"  {'':<16}{'msg/s':>10}  {'lowest to highest':<20}  {'trigmon / it':>12}  {'spread':<14}"
    f"{'CPU us/msg':>11}{'p50 us':>10}{'p99 us':>10}"
)


def ratios(ours: Sequence[Turn], theirs: Sequence[Turn]) -> list[float]:
    """Returns by round what our rate is to theirs: what happened in the same minute is compared."""
    return [mine.rate / other.rate for mine, other in zip(ours, theirs, strict=False)]


def percentile_us(turns: Sequence[Turn], share: float) -> float:
    """Returns what this share of all calls took at most, in microseconds."""
    waits = sorted(wait for each in turns for wait in each.waits_s)
    return waits[min(len(waits) - 1, int(share * len(waits)))] * 1e6


def cpu_us(turns: Sequence[Turn]) -> float | None:
    """Returns the server's CPU a message over all rounds; None where there is no server."""
    spent = [each.cpu_s for each in turns if each.cpu_s is not None]
    return sum(spent) / sum(each.messages for each in turns) * 1e6 if spent else None


def table(figures: Figures) -> str:
    """Returns a cell's figures, a table an operation."""
    lines = []
    for operation, by_peer in figures.turns.items():
        lines += [f"{OPERATIONS[operation]}: {figures.cell}", HEAD]
        lines += [_row(name, turns, by_peer.get(OURS, [])) for name, turns in by_peer.items() if turns]
        lines.append("")
    lines += [f"  {name} could not keep up: up to {left:,} more on its queue" for name, left in figures.left.items()]
    lines += [f"  {name} fell out: {why}" for name, why in figures.failed.items()]
    return "\n".join(lines)


def _row(name: str, turns: Sequence[Turn], ours: Sequence[Turn]) -> str:
    rates = [each.rate for each in turns]
    found = ratios(ours, turns)
    is_ratio = name != OURS and found
    ratio = f"{statistics.median(found):.2f} x" if is_ratio else ""
    spread = f"{min(found):.2f} to {max(found):.2f}" if is_ratio else ""
    cpu = cpu_us(turns)
    return (
        f"  {name:<16}{statistics.median(rates):>10,.0f}  {f'{min(rates):,.0f} to {max(rates):,.0f}':<20}"
        f"  {ratio:>12}  {spread:<14}{'-' if cpu is None else f'{cpu:,.1f}':>11}"
        f"{percentile_us(turns, 0.5):>10,.0f}{percentile_us(turns, 0.99):>10,.0f}"
    )


def machine() -> dict[str, Any]:
    """Returns what the figures were measured on, and how busy others kept it before."""
    return {"cores": os.cpu_count(), "load": os.getloadavg()[0], "kernel": platform.release(), "python": _python()}


def _python() -> str:
    return platform.python_version()


def as_json(measured: Sequence[Figures], absent: Mapping[str, str], how: Mapping[str, Any]) -> dict[str, Any]:
    """Returns all that was measured, each round for itself."""
    rows = [
        {
            "operation": operation,
            "clients": figures.cell.clients,
            "size": figures.cell.size,
            "depth": figures.cell.depth,
            "peer": name,
            "rates": [each.rate for each in turns],
            "ratios": ratios(by_peer.get(OURS, []), turns),
            "cpu_us": [each.cpu_us for each in turns],
            "p50_us": percentile_us(turns, 0.5),
            "p99_us": percentile_us(turns, 0.99),
            "left": figures.left.get(name, 0),
        }
        for figures in measured
        for operation, by_peer in figures.turns.items()
        for name, turns in by_peer.items()
        if turns
    ]
    return {"how": dict(how), "absent": dict(absent), "rows": rows}


def picture(measured: Sequence[Figures], path: Path) -> str:
    """Draws the rates, a row of bars a cell and a column an operation; returns what there is to say of it."""
    if importlib.util.find_spec("matplotlib") is None:
        return f"{path} is not drawn: matplotlib is not importable"
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot

    operations = list(dict.fromkeys(each for figures in measured for each in figures.turns))
    size = (5 * len(operations), 1 + 2.5 * len(measured))
    drawn, axes = pyplot.subplots(len(measured), len(operations), figsize=size, squeeze=False, layout="constrained")
    for row, figures in zip(axes, measured, strict=True):
        for place, operation in zip(row, operations, strict=True):
            by_peer = {name: turns for name, turns in figures.turns.get(operation, {}).items() if turns}
            if not by_peer:
                place.set_axis_off()
                continue
            rates = [[each.rate for each in turns] for turns in by_peer.values()]
            middle = [statistics.median(each) for each in rates]
            low = [at - min(each) for at, each in zip(middle, rates, strict=True)]
            high = [max(each) - at for at, each in zip(middle, rates, strict=True)]
            colours = ["#c0392b" if name == OURS else "#7f8c8d" for name in by_peer]
            place.barh(list(by_peer), middle, xerr=[low, high], color=colours, capsize=3)
            place.invert_yaxis()
            place.set_title(f"{operation}\n{figures.cell}", fontsize=8)
            place.set_xlabel("messages a second", fontsize=8)
            place.tick_params(labelsize=8)
    drawn.savefig(path)
    pyplot.close(drawn)
    return f"{path} is drawn"

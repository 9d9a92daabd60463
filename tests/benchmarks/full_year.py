"""The flights of 2013, put and drained at the same time as shipped, and checked against pandas.

``process_defs/flights_put.py`` puts 336 776 flights; the trigger of the first starts ``FLIGHTS.LOAD``, whose table and
summary are then compared with what pandas makes of the CSV files, in every column. Nothing of trigmon computes that.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet

from tests.daemons import Daemon
from trigmon import paths
from trigmon.demo import data
from trigmon.mq.calls import Display, Runs

LONGEST_S = 3000.0
KEY = ["tailnum", "year", "month", "day"]
OURS = ["batch", "msg_id", "put_time"]
LATE = 15


def measured(directory: Path, until: str = "2013-12-31") -> None:
    """Puts and drains the flights until a day, prints both times, and compares. Raises AssertionError."""
    output = directory / "out"
    os.environ["FLIGHTS_OUTPUT"] = str(output)
    daemon = Daemon(directory, with_monitor=True, settings={"monitor.environment": "FLIGHTS_OUTPUT"})
    daemon.start()
    try:
        applied = daemon.trigmon(
            "apply", str(paths.shipped("config") / "queues.yaml"), str(paths.shipped("process_defs"))
        )
        assert applied.returncode == 0, applied.stderr
        load, began = os.getloadavg()[0], time.perf_counter()
        argv = [sys.executable, str(paths.shipped("process_defs") / "flights_put.py"), "--until", until]
        done = subprocess.run(argv, env=daemon.env, capture_output=True, text=True, check=False, timeout=LONGEST_S)
        assert done.returncode == 0, done.stderr
        put_s = time.perf_counter() - began
        runs = _ended(daemon)
        all_s = time.perf_counter() - began
    finally:
        daemon.end()
    job_s = sum(run["end_ms"] - run["start_ms"] for run in runs) / 1000
    wanted = flights(until)
    table = compared(output, wanted)
    print(f"flights of a year into Parquet, load {load:.1f} before; every column as pandas has it", flush=True)
    print(f"  read and put, while they are drained {put_s:>9.1f} s   {len(wanted) / put_s:,.0f} a second", flush=True)
    print(
        f"  the job, {len(runs)} run(s)                  {job_s:>9.1f} s   {len(table) / job_s:,.0f} a second",
        flush=True,
    )
    print(f"  from the first put to the job's end  {all_s:>9.1f} s", flush=True)


def _ended(daemon: Daemon) -> list[dict[str, Any]]:
    """Waits until the queue is empty and all runs have ended with 0, and returns them."""
    deadline = time.monotonic() + LONGEST_S
    with daemon.connect() as qm:
        while True:
            runs: list[dict[str, Any]] = qm.call(Runs(where={"q_name": "FLIGHTS.IN"})).rows
            depth = qm.call(Display(object_type="QLOCAL", name="FLIGHTS.IN")).rows[0]["current_q_depth"]
            if runs and not depth and all(run["state"] == "exited" for run in runs):
                assert {run["exit_status"] for run in runs} == {0}
                return runs
            assert time.monotonic() < deadline, runs
            time.sleep(0.1)


def flights(until: str) -> pd.DataFrame:
    """Returns the flights until a day by pandas, with the two columns that come from the groups of messages."""
    rows = pd.read_csv(data.of_package("flights.csv.zip"), keep_default_na=False, na_values=["NA"])
    rows["time_hour"] = pd.to_datetime(rows["time_hour"], utc=True)
    days = pd.to_datetime(rows[["year", "month", "day"]])
    rows = rows[days <= until].reset_index(drop=True)
    rows = rows.sort_values([*KEY, "sched_dep_time"], kind="stable")
    grouped = rows[rows["tailnum"].notna()].groupby(KEY)
    rows["leg"] = grouped.cumcount() + 1
    rows["delay_before"] = grouped["dep_delay"].shift()
    return rows


def compared(output: Path, wanted: pd.DataFrame) -> pd.DataFrame:
    """Compares the table and the summary, column by column, and returns the table. Raises AssertionError."""
    table = pyarrow.parquet.read_table(output / "flights", coerce_int96_timestamp_unit="us").to_pandas()
    assert table["msg_id"].is_unique
    assert not set(wanted.columns) - set(table.columns)
    same(table.drop(columns=[name for name in OURS if name in table]), wanted)
    summary = pyarrow.parquet.read_table(output / "delays.parquet").to_pandas()
    same(summary, delays(wanted))
    by_carrier = json.loads((output / "delay_by_carrier.json").read_text())
    assert sum(row["flights"] for row in by_carrier) == len(wanted)
    return table


def delays(rows: pd.DataFrame) -> pd.DataFrame:
    """Returns the delays by carrier, hour and weather by pandas."""
    known = rows.merge(_weather(), on=["origin", "time_hour"], how="left")
    known["weather"] = known["weather"].fillna("unknown")
    known["late"] = known["arr_delay"] > LATE
    known["cancelled"] = known["dep_time"].isna()
    by = known.groupby(["carrier", "hour", "weather"], as_index=False)
    found: pd.DataFrame = by.agg(
        flights=("flight", "size"),
        cancelled=("cancelled", "sum"),
        departed=("dep_delay", "count"),
        departure_delay=("dep_delay", "sum"),
        arrived=("arr_delay", "count"),
        arrival_delay=("arr_delay", "sum"),
        late=("late", "sum"),
    )
    for mean, minutes, of in (
        ("mean_departure_delay", "departure_delay", "departed"),
        ("mean_arrival_delay", "arrival_delay", "arrived"),
    ):
        found[mean] = [_mean(total, count) for total, count in zip(found[minutes], found[of], strict=True)]
    return found


def _mean(minutes: float, count: int) -> float | None:
    """Returns a mean to two places, halves away from zero: in whole hundredths, since pandas rounds halves to even."""
    if not count:
        return None
    hundredths, rest = divmod(abs(int(minutes)) * 100, int(count))
    hundredths += 2 * rest >= count
    return (hundredths if minutes >= 0 else -hundredths) / 100


def _weather() -> pd.DataFrame:
    rows = pd.read_csv(data.of_package("weather.csv"))
    rows["time_hour"] = pd.to_datetime(rows["time_hour"], utc=True)
    word = pd.Series("fair", index=rows.index)
    word[rows["wind_speed"] >= 20] = "wind"
    word[rows["visib"] < 3] = "fog"
    word[rows["precip"] > 0] = "rain"
    word[(rows["precip"] > 0) & (rows["temp"] <= 32)] = "snow"
    return rows[["origin", "time_hour"]].assign(weather=word)


def same(found: pd.DataFrame, wanted: pd.DataFrame) -> None:
    """Compares two frames row for row, in whatever order they have their rows and columns. Raises AssertionError."""
    assert sorted(found.columns) == sorted(wanted.columns)
    frames = []
    for frame in (found, wanted):
        columns = {name: _plain(frame[name]) for name in sorted(frame.columns)}
        plain = pd.DataFrame(columns)
        frames.append(plain.sort_values(list(plain.columns)).reset_index(drop=True))
    pd.testing.assert_frame_equal(*frames)


def _plain(column: pd.Series) -> pd.Series:
    """Returns a column in one type for each kind: numbers as floats, times in UTC as text, all else as text."""
    if isinstance(column.dtype, pd.CategoricalDtype):  # of a directory's name
        column = column.astype(column.cat.categories.dtype)
    if pd.api.types.is_datetime64_any_dtype(column):
        return pd.to_datetime(column, utc=True).dt.strftime("%Y-%m-%dT%H:%M:%S")
    if pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column):
        return column.astype("float64")
    return column.astype("string").fillna("")

"""Summary of a table of flights: delays by carrier, hour and weather.

Beside each mean are the whole numbers it comes from (minutes, and the number of flights), so that rows can be added up.
A mean is rounded to two places, halves away from zero.

The weather of a flight is that of its airport in the scheduled hour of departure: ``snow`` or ``rain`` with
precipitation (up to or above 32 °F), ``fog`` with a visibility below 3 miles, ``wind`` from 20 miles an hour on, else
``fair``; ``unknown`` where the hour is not in the file.
"""

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

WEATHER = """
    origin string, year int, month int, day int, hour int, temp double, dewp double, humid double, wind_dir double,
    wind_speed double, wind_gust double, precip double, pressure double, visib double, time_hour timestamp
"""
LATE = 15
"""Minutes; a flight that arrives later than that is late."""
SUMS = ("flights", "cancelled", "departed", "departure_delay", "arrived", "arrival_delay", "late")
"""The columns of whole numbers."""


def weather(spark: SparkSession, file: Path) -> DataFrame:
    """Returns the kind of weather for each airport and hour."""
    rows = spark.read.csv(f"file:{file.absolute()}", schema=WEATHER, header=True, nullValue="NA")
    fell = F.col("precip") > 0
    word = (
        F.when(fell & (F.col("temp") <= 32), "snow")
        .when(fell, "rain")
        .when(F.col("visib") < 3, "fog")
        .when(F.col("wind_speed") >= 20, "wind")
        .otherwise("fair")
    )
    return rows.select("origin", "time_hour", word.alias("weather"))


def delays(flights: DataFrame, weather: DataFrame) -> DataFrame:
    """Returns a row for each carrier, scheduled hour of departure and weather, in this order."""
    known = flights.join(F.broadcast(weather), ["origin", "time_hour"], "left")
    by = [F.col("carrier"), F.col("hour"), F.coalesce("weather", F.lit("unknown")).alias("weather")]
    counted = known.groupBy(*by).agg(
        F.count("*").alias("flights"),
        F.count_if(F.col("dep_time").isNull()).alias("cancelled"),
        F.count("dep_delay").alias("departed"),
        F.coalesce(F.sum("dep_delay"), F.lit(0)).alias("departure_delay"),
        F.count("arr_delay").alias("arrived"),
        F.coalesce(F.sum("arr_delay"), F.lit(0)).alias("arrival_delay"),
        F.count_if(F.col("arr_delay") > LATE).alias("late"),
    )
    return (
        counted.withColumn("mean_departure_delay", mean("departure_delay", "departed"))
        .withColumn("mean_arrival_delay", mean("arrival_delay", "arrived"))
        .orderBy("carrier", "hour", "weather")
    )


def mean(minutes: str, of: str) -> Column:
    """Returns the mean minutes of a flight; null without flights."""
    return F.round(F.try_divide(minutes, of), 2)


def write(delays: DataFrame, output: Path) -> None:
    """Writes the delays, and those by carrier; each file is replaced atomically."""
    table = delays.toArrow()
    part = output / "delays.part"
    pyarrow.parquet.write_table(table, part)
    replace(part, output / "delays.parquet")
    part.write_text(json.dumps(by_carrier(table.to_pylist()), indent=1) + "\n")
    replace(part, output / "delay_by_carrier.json")


def by_carrier(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns flights, cancellations, mean delays and the share of late arrivals; the latest carrier comes first."""
    sums: dict[str, Counter[str]] = {}
    for row in rows:
        sums.setdefault(row["carrier"], Counter()).update({name: row[name] for name in SUMS})
    found = [
        {
            "carrier": carrier,
            "flights": of["flights"],
            "cancelled": of["cancelled"],
            "mean_departure_delay": round(of["departure_delay"] / of["departed"], 1) if of["departed"] else None,
            "mean_arrival_delay": round(of["arrival_delay"] / of["arrived"], 1) if of["arrived"] else None,
            "late_share": round(of["late"] / of["arrived"], 3) if of["arrived"] else None,
        }
        for carrier, of in sums.items()
    ]
    return sorted(found, key=lambda row: (row["mean_arrival_delay"] is None, -(row["mean_arrival_delay"] or 0)))


def replace(part: Path, file: Path) -> None:
    """Replaces a file by another one, atomically and durably (fsync)."""
    with part.open("rb") as written:
        os.fsync(written.fileno())
    part.replace(file)
    directory = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)

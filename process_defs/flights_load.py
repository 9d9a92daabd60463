"""PySpark job: takes flights from a queue, adds them to a Parquet table, and says how late each carrier was.

A message is one flight as JSON (trigmon/demo/PROVENANCE.md tells the fields). Below the output directory it leaves

    flights/batch=unit-.../    the Parquet table, a directory a unit of work
    flights.staging/           batches whose messages are not committed yet
    delay_by_carrier.json      the whole table's delays, one object a carrier

Messages that are no flight go to the queue's backout queue: left where they are, each run would fail on them again.
A unit's rows are staged, its messages committed, and the batch is moved into the table by one rename. Wherever the job
is killed, the next one finds out what became of the unit and moves the batch or drops it: nothing is lost or doubled.
"""

import argparse
import json
import os
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - every Spark program calls it so

from trigmon.client.message import Message
from trigmon.spark import jobs

SCHEMA = """
    year int, month int, day int, dep_time int, sched_dep_time int, dep_delay int, arr_time int, sched_arr_time int,
    arr_delay int, carrier string, flight int, tailnum string, origin string, dest string, air_time int, distance int,
    hour int, minute int, time_hour timestamp
"""


def main() -> None:
    """Drains the queue and writes the table and the delays."""
    options = parsed()
    spark = SparkSession.builder.appName("flights_load").getOrCreate()
    output: Path = options.output
    table = output / "flights"
    with jobs.queue(options.queue) as messages:
        messages.settle(table)
        while unit := messages.take(options.unit, wait_interval_ms=1000):
            with unit:
                flights = [message for message in unit.messages if is_flight(message)]
                messages.set_aside([message for message in unit.messages if message not in flights])
                if flights:
                    rows(spark, flights).write.parquet(unit.staged(table))
            print(f"{len(unit.messages)} messages taken, {len(flights)} flights written", flush=True)
        if table.exists():
            report(delay_by_carrier(spark.read.parquet(str(table))), output / "delay_by_carrier.json")
    spark.stop()


def parsed() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Flights from a queue to Parquet, and delays by carrier.")
    parser.add_argument("--queue", help="default: the queue whose trigger started this job")
    parser.add_argument("--output", type=Path, default=os.environ.get("FLIGHTS_OUTPUT") or Path.home() / "flights")
    parser.add_argument("--unit", type=int, default=500, help="messages a unit of work")
    return parser.parse_args()


def rows(spark: SparkSession, flights: list[Message]) -> DataFrame:
    """The flights' fields, beside the message's id and the time it was put; one file of them is enough."""
    said = jobs.frame(spark, flights).withColumn("said", F.from_json(F.col("data").cast("string"), SCHEMA))
    return said.select("msg_id", "put_time", "said.*").coalesce(1)


def is_flight(message: Message) -> bool:
    """Whether the message is a flight."""
    try:
        return bool(json.loads(message.data)["carrier"])
    except (ValueError, TypeError, KeyError):
        return False


def delay_by_carrier(flights: DataFrame) -> DataFrame:
    """Flights, cancellations, mean delays in minutes, and the share that arrived over 15 minutes late."""
    return (
        flights.groupBy("carrier")
        .agg(
            F.count("*").alias("flights"),
            F.sum(F.col("dep_time").isNull().cast("int")).alias("cancelled"),
            F.round(F.avg("dep_delay"), 1).alias("mean_departure_delay"),
            F.round(F.avg("arr_delay"), 1).alias("mean_arrival_delay"),
            F.round(F.avg((F.col("arr_delay") > 15).cast("int")), 3).alias("late_share"),
        )
        .orderBy(F.desc("mean_arrival_delay"))
    )


def report(delays: DataFrame, file: Path) -> None:
    """Writes the table for people and programs; a reader sees the old one or the new one."""
    beside = file.with_suffix(".part")
    beside.write_text(json.dumps([row.asDict() for row in delays.collect()], indent=1) + "\n")
    beside.replace(file)


if __name__ == "__main__":
    main()

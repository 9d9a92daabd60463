"""PySpark job: takes flights from a queue, adds them to a Parquet table, and says how late each carrier was.

A message is one flight as JSON (trigmon/demo/PROVENANCE.md tells the fields). Below the output directory it leaves

    flights/batch=.../         the Parquet table, a directory a batch of messages
    flights.staging/           a batch that is being written
    delay_by_carrier.json      the whole table's delays, one object a carrier

A message that is no flight fails its batch; it is found by halving, and set aside onto the queue's backout queue.
Wherever the job is killed, the next is given the same batch, which the table takes once: nothing is lost or doubled.
"""

import argparse
import json
import os
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - every Spark program calls it so

from trigmon.spark import drain

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
    done = drain(
        spark,
        table=table,
        transform=flights,
        queue=options.queue,
        max_rows=options.batch,
        wait_interval_ms=1000,
        progress=lambda batch: print(f"{batch.count} flights written", flush=True),
        options={"columns": "msg_id, put_time, data"},
    )
    print(f"{done.rows} messages in {done.batches} batches, {len(done.rejected)} set aside", flush=True)
    if table.exists():
        report(delay_by_carrier(spark.read.parquet(str(table))), output / "delay_by_carrier.json")
    spark.stop()


def parsed() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Flights from a queue to Parquet, and delays by carrier.")
    parser.add_argument("--queue", help="default: the queue whose trigger started this job")
    parser.add_argument("--output", type=Path, default=os.environ.get("FLIGHTS_OUTPUT") or Path.home() / "flights")
    parser.add_argument("--batch", type=int, default=10_000, help="messages a batch")
    return parser.parse_args()


def flights(messages: DataFrame) -> DataFrame:
    """The flights' fields, beside the message's id and the time it was put; one file of them is enough."""
    msg_id = F.lower(F.hex("msg_id"))
    said = messages.withColumn("said", F.from_json(F.col("data").cast("string"), SCHEMA))
    carrier = F.coalesce(F.col("carrier"), F.raise_error(F.concat(F.lit("no flight: message "), F.col("msg_id"))))
    rows = said.select(msg_id.alias("msg_id"), "put_time", "said.*")
    return rows.withColumn("carrier", carrier).coalesce(1)


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

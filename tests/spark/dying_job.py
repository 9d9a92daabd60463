"""A job that drains a queue into a table, and is killed with all of its Spark at a named moment, once.

dying_job.py HOW MOMENT MARKER TABLE QUEUE ADDRESS; HOW is drain or stream, MOMENT one of: "before the sink",
"after the sink", "before settling", "after settling".
"""

import os
import signal
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from trigmon.client.reservation import Reservation
from trigmon.spark import drain, write_batch

how, moment, marker, table, queue, address = sys.argv[1:]
ROWS = 20


def die(now, number):
    if now == moment and number == 1 and not Path(marker).exists():
        Path(marker).touch()
        os.killpg(0, signal.SIGKILL)


def draining(spark):
    """Batch by batch; the second one is the one that dies."""
    counts = {"batch": -1}
    settle = Reservation.settle

    def settling(of, *arguments):
        die("before settling", counts["batch"])
        done = settle(of, *arguments)
        die("after settling", counts["batch"])
        return done

    Reservation.settle = settling

    def each(frame, batch):
        counts["batch"] += 1
        die("before the sink", counts["batch"])
        write_batch(frame.select("data"), table, batch.id)
        die("after the sink", counts["batch"])

    drain(spark, each, queue=queue, qmgr=address, max_rows=ROWS)


def streaming(spark):
    """By a stream with a checkpoint, whose batches have numbers."""

    def each(frame, number):
        die("before the sink", number)
        write_batch(frame.select("data"), table, f"n{number}")
        die("after the sink", number)

    stream = spark.readStream.format("trigmon").options(queue=queue, address=address, maxRows=ROWS).load()
    written = stream.writeStream.foreachBatch(each).option("checkpointLocation", f"{table}.checkpoint")
    written.trigger(availableNow=True).start().awaitTermination()


spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
{"drain": draining, "stream": streaming}[how](spark)
spark.stop()

"""A job that drains a queue into a table and is killed by a message: deadly_job.py HOW TABLE QUEUE ADDRESS MAX_ROWS.

HOW is signal (SIGKILL to itself), exit (an end without a word) or java (the end of its Java machine). Where a message
begins with "bad", reading it does that.
"""

import os
import signal
import sys
from functools import partial

from pyspark.sql import SparkSession

from trigmon.spark import drain, refuse_batch, write_batch

how, table, queue, address, max_rows = sys.argv[1:]


def each(frame, batch):
    """What a function of a user may do with a batch before it writes it."""
    rows = frame.select("data").collect()
    if any(bytes(row.data).startswith(b"bad") for row in rows):
        if how == "signal":
            os.kill(os.getpid(), signal.SIGKILL)
        elif how == "exit":
            os._exit(0)
        else:
            spark._jvm.java.lang.Runtime.getRuntime().halt(137)
    write_batch(frame, table, batch.id)


spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
options = {"columns": "data,group_id"}
drain(
    spark,
    each,
    queue=queue,
    qmgr=address,
    max_rows=int(max_rows),
    groups=True,
    options=options,
    refuse=partial(refuse_batch, table),
)
spark.stop()

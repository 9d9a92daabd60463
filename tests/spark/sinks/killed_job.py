"""A job that drains a queue into a sink: killed_job.py KIND DIRECTORY QUEUE ADDRESS ROWS MOMENT.

KIND is delta, iceberg or objects. At MOMENT, in its second batch, it is killed with all of its Spark, unless that is
"never": "before the files", "before the commit", "after the commit".
"""

import os
import signal
import sys

from pyspark.sql import SparkSession

from trigmon.spark import drain
from trigmon.spark.sinks import delta_table, iceberg_table, object_table

kind, directory, queue, address, rows, moment = sys.argv[1:]
ICEBERG = {
    "type": "sql",
    "uri": f"sqlite:///{directory}/catalog.db",
    "warehouse": f"file://{directory}/table",
}
module, sink = {
    "delta": lambda: (delta_table, delta_table.DeltaSink(f"{directory}/table")),
    "iceberg": lambda: (iceberg_table, iceberg_table.IcebergSink("shop.orders", options=ICEBERG)),
    "objects": lambda: (object_table, object_table.ObjectSink(f"{directory}/table")),
}[kind]()
written = []


def die(at):
    if moment == at and len(written) == 1:
        os.killpg(0, signal.SIGKILL)


class Dying:
    """The sink, and the moments of its second batch."""

    check, refuse = sink.check, sink.refuse

    def write(self, frame, batch):
        is_new = sink.write(frame, batch)
        die("after the commit")
        written.append(batch)
        return is_new


def writing(*arguments, **options):
    die("before the files")
    files = write_files(*arguments, **options)
    die("before the commit")
    return files


write_files, module.write_files = module.write_files, writing
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
drain(spark, to=Dying(), queue=queue, qmgr=address, max_rows=int(rows), options={"columns": "data"})
spark.stop()

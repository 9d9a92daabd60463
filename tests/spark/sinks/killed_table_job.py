"""A job that drains a queue into a table: killed_table_job.py WHERE DIRECTORY QUEUE ADDRESS ROWS.

WHERE is "files", a table that Spark writes, "task files", one that tasks write, or the URL of a PostgreSQL.
"""

import sys

from pyspark.sql import SparkSession

from tests.spark.conftest import postgres_jar
from trigmon.spark import drain
from trigmon.spark.sinks.postgres_table import PostgresSink

where, directory, queue, address, rows = sys.argv[1:]
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
if where not in ("files", "task files"):
    builder = builder.config("spark.jars", postgres_jar())
spark = builder.getOrCreate()


def as_text(frame):
    """Turns the data into text, so that Spark writes the rows."""
    return frame.selectExpr("cast(data as string) data")


how = {"queue": queue, "qmgr": address, "max_rows": int(rows), "options": {"columns": "data"}}
if where == "task files":
    drain(spark, table=f"{directory}/table", **how)
elif where == "files":
    drain(spark, table=f"{directory}/table", transform=as_text, **how)
else:
    sink = PostgresSink(spark, where, "orders", options={"user": "postgres"})
    drain(spark, to=sink, transform=as_text, **how)
spark.stop()

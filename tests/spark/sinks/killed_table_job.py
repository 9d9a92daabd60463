"""A job that drains a queue into a table: killed_table_job.py WHERE DIRECTORY QUEUE ADDRESS ROWS.

WHERE is "table", of files, or the URL of a PostgreSQL.
"""

import sys

from pyspark.sql import SparkSession

from tests.spark.conftest import postgres_jar
from trigmon.spark import drain
from trigmon.spark.sinks.postgres_table import PostgresSink

where, directory, queue, address, rows = sys.argv[1:]
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
if where != "table":
    builder = builder.config("spark.jars", postgres_jar())
spark = builder.getOrCreate()
sink = (
    {"table": f"{directory}/table"}
    if where == "table"
    else {"to": PostgresSink(spark, where, "orders", options={"user": "postgres"})}
)
how = {"queue": queue, "qmgr": address, "max_rows": int(rows), "options": {"columns": "data"}}
drain(spark, transform=lambda frame: frame.selectExpr("cast(data as string) data"), **sink, **how)
spark.stop()

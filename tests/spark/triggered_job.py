"""A job as a trigger starts it: drains the queue whose trigger it was into a table. triggered_job.py TABLE MAX_ROWS"""

import sys

from pyspark.sql import SparkSession

from trigmon.spark import drain

table, max_rows = sys.argv[1:]
spark = SparkSession.builder.appName("triggered job").getOrCreate()
done = drain(spark, table=table, max_rows=int(max_rows), options={"columns": "data"})
print(f"{done.rows} messages in {done.batches} batches")
spark.stop()

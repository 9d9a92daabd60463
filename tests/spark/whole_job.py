"""A job that does everything once: whole_job.py MASTER TABLE QUEUE TO ADDRESS. MASTER is Spark's, or a Connect server.

It copies QUEUE to TO by a stream, and drains TO into TABLE.
"""

import sys

from pyspark.sql import SparkSession

from trigmon.spark import drain

master, table, queue, to, address = sys.argv[1:]
builder = SparkSession.builder.appName("whole job")
if master.startswith("remote "):
    builder = builder.remote(master.removeprefix("remote "))
else:
    builder = builder.master(master).config("spark.driver.host", "127.0.0.1")
spark = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()

waiting = spark.read.format("trigmon").options(queue=queue, address=address, partitions=2, columns="data")
print("browsed", waiting.load().count())

stream = spark.readStream.format("trigmon").options(queue=queue, address=address, maxRows=40, columns="data").load()
written = stream.writeStream.format("trigmon").options(queue=to, address=address, staging=f"{table}.laid")
written = written.option("checkpointLocation", f"{table}.checkpoint").trigger(availableNow=True)
written.start().awaitTermination()

done = drain(spark, table=table, queue=to, qmgr=address, max_rows=60)
print("drained", done.batches, done.rows)
spark.stop()

"""What a user of the data source does, for a classic session and for one of Spark Connect: prints what came of it.

Arguments: the queue manager's address, a queue, an empty directory; with a fourth, the address of a Connect server.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.types import MapType, StringType

from trigmon.spark import schema_of_queue


def main(address: str, queue: str, directory: str, remote: str = "") -> None:
    builder = SparkSession.builder
    spark = (builder.remote(remote) if remote else builder.master("local[2]")).getOrCreate()
    said: dict[str, object] = {}

    def error(work) -> list[str]:
        try:
            work()
        except Exception as refused:
            return str(refused).splitlines()
        return ["nothing was refused"]

    def read(**options):
        return spark.read.format("trigmon").options(address=address, **options)

    said["empty"] = error(lambda: schema_of_queue(spark, queue, qmgr=address))
    headers = "map('color', concat('c', id), 'mcd.Msd', 'x') AS headers"
    rows = spark.range(200).selectExpr("cast(id AS string) AS data", headers, "3 AS priority")
    rows.write.format("trigmon").option("address", address).mode("append").save(queue)
    frame = read(columns="data,headers,priority", partitions=4).load(queue)
    parts = frame.selectExpr("cast(data AS string) AS data", "headers", "priority", "spark_partition_id() AS part")
    said["read"] = [[row.data, row.headers, row.priority, row.part] for row in parts.collect()]
    said["whole"] = read(columns="format").load(queue).distinct().collect()[0].format
    said["not objects"] = error(lambda: schema_of_queue(spark, queue, 10, qmgr=address))
    said["typing error"] = error(lambda: read(maxRow="1").load(queue).count())
    said["no queue"] = error(lambda: read(columns="data").load("NO.SUCH.QUEUE").count())
    said["no queue to write"] = error(
        lambda: spark.range(1).selectExpr("'x' AS data").write.format("trigmon").option("address", address)
        .mode("append").save("NO.SUCH.QUEUE")
    )  # fmt: skip
    said["nobody there"] = error(
        lambda: spark.read.format("trigmon").option("address", "unix:/none").load(queue).count()
    )
    stream = spark.readStream.format("trigmon").options(
        address=address, queue=queue, maxRows="150", columns="data,headers"
    )
    query = (
        stream.load().selectExpr("headers['usr.color'] AS color").writeStream.format("parquet")
        .option("path", f"{directory}/table").option("checkpointLocation", f"{directory}/checkpoint")
        .trigger(availableNow=True).start()
    )  # fmt: skip
    query.awaitTermination(600)
    sources = [json.loads(json.dumps(progress["sources"][0], default=str)) for progress in query.recentProgress]
    said["stream"] = [[source["numInputRows"], str(source["latestOffset"])] for source in sources]
    said["colors"] = sorted(row.color for row in spark.read.parquet(f"{directory}/table").collect())
    objects = spark.sql("SELECT * FROM VALUES (1, 'one', map('a', 'b')), (2, NULL, NULL) AS t(id, name, mq_headers)")
    plain, headed = objects.drop("mq_headers"), objects.selectExpr("id", "name", "mq_headers")
    for rows, to in ((plain, queue), (headed, queue)):
        rows.write.format("trigmon").options(address=address, format="json").mode("append").save(to)
    schema = schema_of_queue(spark, queue, 10, qmgr=address)
    said["schema of texts"] = schema.simpleString()
    back = read(format="json").schema(schema.add("mq_headers", MapType(StringType(), StringType()))).load(queue)
    said["objects"] = sorted([row.id, row.mq_headers] for row in back.collect() if row.mq_headers or row.id == 2)
    Path(directory, "said.json").write_text(json.dumps(said))


if __name__ == "__main__":
    main(*sys.argv[1:])

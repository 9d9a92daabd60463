"""What a user of the data source does, for a classic session and for one of Spark Connect: prints what came of it.

Arguments: the queue manager's address, a queue, an empty directory; with a fourth, the address of a Connect server.
There is a second queue, QUEUE.TOO, and a third, QUEUE.FULL, with messages that are to become a table.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import DataFrameReader, SparkSession
from pyspark.sql.types import MapType, StringType

from trigmon.spark import drain, schema_of_queue


def main(address: str, queue: str, directory: str, remote: str = "") -> None:
    builder = SparkSession.builder
    if remote:
        builder = builder.remote(remote)
    else:
        builder = builder.master("local[2]").config("spark.sql.warehouse.dir", f"{directory}/warehouse")
    spark = builder.getOrCreate()
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
    least = read(columns="data", minPartitions=3).load(queue).selectExpr("spark_partition_id() AS part")
    said["least partitions"] = sorted(row.part for row in least.distinct().collect())
    said["whole"] = read(columns="format").load(queue).distinct().collect()[0].format
    said["not objects"] = error(lambda: schema_of_queue(spark, queue, 10, qmgr=address))
    said["typing error"] = error(lambda: read(maxRow="1").load(queue).count())
    said["no number"] = error(lambda: read(minPartitions="x").load(queue).count())
    said["two values"] = error(lambda: read(maxRows=1, maxOffsetsPerTrigger=2).load(queue).count())
    said["no queue"] = error(lambda: read(columns="data").load("NO.SUCH.QUEUE").count())
    said["no queue to write"] = error(
        lambda: spark.range(1).selectExpr("'x' AS data").write.format("trigmon").option("address", address)
        .mode("append").save("NO.SUCH.QUEUE")
    )  # fmt: skip
    said["nobody there"] = error(
        lambda: spark.read.format("trigmon").option("address", "unix:/none").load(queue).count()
    )

    def stream(of: str):
        options = {"maxOffsetsPerTrigger": "150", "minPartitions": "3", "columns": "data,headers"}
        frame = spark.readStream.format("trigmon").options(address=address, queue=of, **options).load()
        writer = frame.selectExpr("headers['usr.color'] AS color", "spark_partition_id() AS part").writeStream
        query = (
            writer.format("parquet").option("path", f"{directory}/table")
            .option("checkpointLocation", f"{directory}/checkpoint").trigger(availableNow=True).start()
        )  # fmt: skip
        query.awaitTermination(600)
        return query

    sources = [progress["sources"][0] for progress in stream(queue).recentProgress]
    said["stream"] = [[source["numInputRows"], json.loads(source["latestOffset"])] for source in sources]
    said["another's checkpoint"] = error(lambda: stream(f"{queue}.TOO"))
    table = spark.read.parquet(f"{directory}/table").collect()
    said["colors"] = sorted(row.color for row in table)
    said["stream's partitions"] = sorted({row.part for row in table})
    objects = spark.sql("SELECT * FROM VALUES (1, 'one', map('a', 'b')), (2, NULL, NULL) AS t(id, name, mq_headers)")
    plain, headed = objects.drop("mq_headers"), objects.selectExpr("id", "name", "mq_headers")
    for rows, to in ((plain, queue), (headed, queue)):
        rows.write.format("trigmon").options(address=address, format="json").mode("append").save(to)
    schema = schema_of_queue(spark, queue, 10, qmgr=address)
    said["schema of texts"] = schema.simpleString()
    back = read(format="json").schema(schema.add("mq_headers", MapType(StringType(), StringType()))).load(queue)
    said["objects"] = sorted([row.id, row.mq_headers] for row in back.collect() if row.mq_headers or row.id == 2)
    said["sql"] = of_sql(spark, address, f"{queue}.TOO", error)
    said["modes"] = of_modes(read(format="json", columnNameOfCorruptRecord="bad"), f"{queue}.TOO", error)
    said["drained"] = drain(spark, table=f"{directory}/drained", queue=f"{queue}.FULL", qmgr=address).rows
    Path(directory, "said.json").write_text(json.dumps(said))


def of_sql(spark: SparkSession, address: str, queue: str, error) -> dict[str, object]:
    """Returns what a table of the queue holds after two INSERTs, and which tables are refused."""
    said: dict[str, object] = {}
    where = f"queue '{queue}', address '{address}'"
    spark.sql(f"CREATE TABLE of_queue USING trigmon OPTIONS({where}, columns 'data')")
    spark.sql("""INSERT INTO of_queue VALUES (cast('{"id": 1}' AS binary))""")
    spark.sql("INSERT INTO of_queue SELECT cast('no json' AS binary)")
    said["rows"] = [row.text for row in spark.sql("SELECT cast(data AS string) AS text FROM of_queue").collect()]
    spark.sql("DROP TABLE of_queue")
    said["typing error"] = error(lambda: spark.sql(f"CREATE TABLE typo USING trigmon OPTIONS({where}, maxRow '1')"))
    spark.sql(f"CREATE TABLE of_columns (data binary) USING trigmon OPTIONS({where})")
    said["columns of its own"] = error(lambda: spark.sql("SELECT * FROM of_columns").collect())
    spark.sql("DROP TABLE of_columns")
    as_json = f"OPTIONS ({where}, format 'json', mode 'PERMISSIVE')"
    spark.sql(f"CREATE TEMPORARY VIEW objects (id bigint) USING trigmon {as_json}")
    said["view"] = [row.id for row in spark.sql("SELECT id FROM objects").collect()]
    return said


def of_modes(reader: DataFrameReader, queue: str, error) -> dict[str, object]:
    """Returns the rows of a good and a bad message by each mode of JSON, or what was refused."""
    reader = reader.schema("id bigint, bad string")

    def rows(mode):
        return list(map(list, reader.option("mode", mode).load(queue).collect()))

    said: dict[str, object] = {mode: rows(mode) for mode in ("PERMISSIVE", "DROPMALFORMED")}
    return said | {mode: error(lambda mode=mode: rows(mode)) for mode in ("FAILFAST", "STRICT")}


if __name__ == "__main__":
    main(*sys.argv[1:])

"""The library for Spark jobs: a queue as a data source, and a drain of a queue exactly once.

>>> from trigmon.spark import drain
>>> drain(spark, table="/data/orders", queue="ORDERS")  # doctest: +SKIP

- ``drain`` is one call for the usual job, ``batches`` a context manager for a job with its own loop over the batches;
- ``schema_of_queue`` infers the schema of JSON messages;
- ``format("trigmon")`` reads, writes and streams (:mod:`trigmon.spark.source`);
- ``FileSink``: files of any format, also partitioned, for ``drain(to=...)`` (:mod:`trigmon.spark.file_sink`);
  ``write_batch`` and ``refuse_batch`` do so for jobs that write themselves (:mod:`trigmon.spark.file_table`), and
  :mod:`trigmon.spark.jdbc_table` is a table of a database for them;
- ``read_table``, ``snapshot_of``: such a table for readers, whom no compaction disturbs;
- ``SinkError``: what a job raises for a fault of its sink, which no message has caused;
- :mod:`trigmon.spark.sinks`: Delta and Iceberg tables, Parquet on object stores, PostgreSQL, topics of Kafka;
- :mod:`trigmon.spark.load` is a job without code: it moves a queue into Parquet, JSON or a database.
"""

from importlib.util import find_spec

if find_spec("pyspark") is None:
    raise ImportError("trigmon.spark needs PySpark: pip install 'trigmon[spark]'")

from trigmon.spark.drain_queue import Drained, drain
from trigmon.spark.file_sink import FileSink
from trigmon.spark.file_table import refuse_batch, write_batch
from trigmon.spark.files.table_snapshot import read_table, snapshot_of
from trigmon.spark.infer_schema import NoSchemaError, schema_of_queue
from trigmon.spark.poison_search.failed_batches import Rejected
from trigmon.spark.queue_batches import Batch, Batches, batches
from trigmon.spark.sinks.sink import SinkError

__all__ = [
    "Batch",
    "Batches",
    "Drained",
    "FileSink",
    "NoSchemaError",
    "Rejected",
    "SinkError",
    "batches",
    "drain",
    "read_table",
    "refuse_batch",
    "schema_of_queue",
    "snapshot_of",
    "write_batch",
]

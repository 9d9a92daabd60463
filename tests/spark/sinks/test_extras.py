"""A sink whose package is not installed names the extra that brings it, before anything is taken."""

from __future__ import annotations

import sys

import pytest

from trigmon.spark.sinks.delta_table import DeltaSink
from trigmon.spark.sinks.iceberg_table import IcebergSink
from trigmon.spark.sinks.kafka_topic import KafkaSink
from trigmon.spark.sinks.object_table import ObjectSink
from trigmon.spark.sinks.sink import SinkError


@pytest.mark.parametrize(
    ("package", "extra", "sink"),
    [
        ("deltalake", "delta", lambda: DeltaSink("/a/table")),
        ("pyiceberg.catalog", "iceberg", lambda: IcebergSink("a.table")),
        ("obstore.store", "objects", lambda: ObjectSink("s3://a/table")),
        ("confluent_kafka", "kafka", lambda: KafkaSink("a topic")),
    ],
)
def test_a_missing_package_is_named_by_its_extra(monkeypatch, package, extra, sink):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(SinkError, match=rf"pip install 'trigmon\[{extra}\]'"):
        sink().check()

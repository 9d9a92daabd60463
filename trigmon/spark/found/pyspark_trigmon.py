"""By a top-level module of such a name Spark finds data sources by itself; the wheel carries this one there."""

from trigmon.spark.source import DefaultSource

__all__ = ["DefaultSource"]

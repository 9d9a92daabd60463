"""The module by whose name Spark finds the data source. The wheel installs it at the top level."""

from trigmon.spark.source import DefaultSource

__all__ = ["DefaultSource"]

"""Whether a session's Spark is in the job's own process, or behind Spark Connect."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession


def context_of(spark: SparkSession) -> SparkContext | None:
    """Returns the context of a session whose Spark is in this process, None of one of Spark Connect."""
    context: SparkContext | None = getattr(spark, "_sc", None)
    return context

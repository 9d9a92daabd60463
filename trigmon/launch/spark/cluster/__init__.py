"""Spark jobs whose driver runs on a standalone cluster, submitted by its REST server."""

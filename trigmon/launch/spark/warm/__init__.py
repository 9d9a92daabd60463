"""Spark jobs in a session of a Spark Connect server that runs already."""

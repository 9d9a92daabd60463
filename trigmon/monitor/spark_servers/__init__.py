"""Spark Connect servers of a monitor: which run in which session, and how far each is."""

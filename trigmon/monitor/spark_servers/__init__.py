"""Spark Connect servers of a monitor: admission of runs to sessions, and the progress of runs."""

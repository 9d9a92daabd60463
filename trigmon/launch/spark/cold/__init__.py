"""Spark jobs with a driver of their own: spark-submit, its java command, and archives of classes."""

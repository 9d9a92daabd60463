"""Finds the messages of a batch that make a job fail."""

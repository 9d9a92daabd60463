"""Logical order: groups of logical messages, logical messages of segments, and where a handle stands in them."""

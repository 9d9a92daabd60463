"""Puts and gets: descriptors, units of work, groups and segments, expiry, reports."""

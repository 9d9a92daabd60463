"""Metrics for Prometheus, and the health of a queue manager: a client reads them, and serves or writes them."""

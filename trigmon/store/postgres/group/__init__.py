"""A queue-sharing group in a schema of PostgreSQL."""

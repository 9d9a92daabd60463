"""A queue manager's messages, definitions and runs in a schema of a PostgreSQL database."""

"""A queue manager's messages, definitions and runs in one SQLite file."""

"""What runs in processes of their own so that a Spark job starts at once: fork server, attendant, Python's daemon."""

"""The reference store: messages, definitions and run records in memory."""

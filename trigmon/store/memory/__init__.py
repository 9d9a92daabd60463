"""The reference store: messages, definitions and runs in memory."""

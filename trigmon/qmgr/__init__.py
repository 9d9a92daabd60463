"""The queue manager: performs every call in the same way, on one store."""

"""The housekeeper: one manager performs every call the same way, on one store."""

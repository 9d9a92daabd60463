"""What the stores whose messages are rows of a database have in common: statements, looking, groups, the ledger."""

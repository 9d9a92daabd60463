"""The journal: what each turn changed, on disk before the turn is answered, and before the store's own file has it."""

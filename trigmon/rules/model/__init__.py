"""Values that a decision reads and makes: facts, changes, internal calls, state and its transitions."""

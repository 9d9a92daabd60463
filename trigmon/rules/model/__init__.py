"""Values that a decision reads and makes: facts, changes, errands, state and its transitions."""

"""The run ledger: which programs may start, what a run was, and what a process definition may say."""

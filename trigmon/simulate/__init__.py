"""The rehearsal: scenarios played on the real rules and the real queue manager, on a clock only they move."""

"""The keeper: a process that starts a monitor's programs and records how they end, even without the monitor."""

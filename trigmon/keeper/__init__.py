"""The process that starts programs for a monitor and sees them end, whatever becomes of the monitor."""

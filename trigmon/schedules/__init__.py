"""The moments of schedules, worked out from a crontab line or an interval and a time that is handed in."""

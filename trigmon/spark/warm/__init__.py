"""Processes for fast starts of Spark Connect jobs: the fork server, the job process, and the monitor's attendant."""

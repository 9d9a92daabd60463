"""The daemon: clients reach a queue manager over sockets; settings, start, timed work and exit status."""

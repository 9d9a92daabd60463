"""The door: the daemon that lets clients come to a queue manager over sockets, and what keeps it standing."""

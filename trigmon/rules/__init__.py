"""The rules of the queue manager: pure functions from facts to decisions.

Nothing here reads a clock, a file or a socket.
"""

"""The law: pure functions from facts to decisions. Nothing here reads a clock, a file or a socket."""

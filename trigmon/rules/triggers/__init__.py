"""When a queue asks for a program: the fourteen conditions of seed 001 (described in CONDITIONS.md)."""

"""When a queue asks for a program: the fourteen conditions of seed 001 (told in CONDITIONS.md)."""

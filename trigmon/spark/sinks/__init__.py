"""Places that take each batch of a queue once."""

"""Reservations: a fixed batch of messages for one consumer."""

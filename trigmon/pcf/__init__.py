"""MQ's programmable command format (PCF): the bytes of event messages."""

"""The stores of messages, definitions and run records, behind one interface."""

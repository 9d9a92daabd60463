"""The cellar: where messages, definitions and runs lie, behind one port."""

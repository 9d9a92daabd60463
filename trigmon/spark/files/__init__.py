"""The parts of a table of files: its lock and its staging, its schema, its compaction, and snapshots for readers."""

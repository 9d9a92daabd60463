"""The command line: one file a noun, click only here, and each command imports what it needs when it runs."""

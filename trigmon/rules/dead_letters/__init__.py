"""Dead letters, messages that no queue takes, and messages that were backed out too often."""

"""Queue managers elsewhere, reached through IBM's package ``ibmmq`` alone: their trigger messages and their queues."""

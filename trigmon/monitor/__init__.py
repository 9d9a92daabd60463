"""The watcher: gets trigger messages from an initiation queue and starts what they ask for."""

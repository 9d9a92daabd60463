"""The trigger monitor: gets trigger messages from an initiation queue and starts the programs that they name."""

"""MQSC, the language of MQ's commands, to calls, and replies to the text that MQ prints."""

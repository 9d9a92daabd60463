"""MQ's command server: performs the commands, in PCF, that are put on SYSTEM.ADMIN.COMMAND.QUEUE."""

"""MQ's commands by their names: each reads MQ's options, calls what trigmon has, and answers in MQ's layout."""

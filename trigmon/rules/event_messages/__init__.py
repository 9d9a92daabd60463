"""Event messages: what is reported, and how an event message is put. Nothing here can refuse what it reports."""

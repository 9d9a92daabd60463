"""Messages over HTTP, as MQ's REST interface has them: its paths, its headers, its answers and errors."""

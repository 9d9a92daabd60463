"""The notifier: event messages as mail, as a request to a web hook, or as the input of a command."""

"""What operators see: a console, metrics."""

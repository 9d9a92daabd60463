"""What operators see: one model for the terminal and for the web."""

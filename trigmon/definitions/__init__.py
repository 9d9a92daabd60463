"""The files: objects as people keep them in YAML, to calls and back."""

"""The Python client of a queue manager. Blocking, small, quick to import.

``import trigmon`` offers all of it; every triggered program pays for this package, so it imports nothing but the
standard library, msgspec, the words and the wire.
"""

"""TLS for both ends of a connection: contexts, certificates, and the accounts of those who come by it."""

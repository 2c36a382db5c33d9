"""Sessions with servers: one background thread, the life of each server, and its connections."""

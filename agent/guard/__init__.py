"""Keeps containers from a cloud's metadata addresses: a table of our own in the packet filter."""

"""Leases of background jobs in the database: the queue may lose or double any message."""

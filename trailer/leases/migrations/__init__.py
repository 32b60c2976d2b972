"""Schema of the leases."""

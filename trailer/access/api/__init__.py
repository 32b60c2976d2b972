"""REST endpoints of grants and host capabilities."""

"""Schema history of grants and capabilities."""

"""Schema history of the audit."""

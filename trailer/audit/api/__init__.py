"""REST endpoints of the audit."""

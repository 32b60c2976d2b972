"""What a stack may need beside its services: databases and caches, one file per kind."""

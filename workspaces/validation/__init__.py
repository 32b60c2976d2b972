"""Validation of a workspace's writable fields: pure functions, one sentence per refusal."""

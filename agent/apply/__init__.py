"""Carrying a plan out: the walk, one handler per step, and what is told about it."""

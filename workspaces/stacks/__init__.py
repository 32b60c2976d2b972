"""Stacks: services on one host, described by a file in a git repository."""

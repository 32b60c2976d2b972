"""Replaces the agent's container by a new one that was proved first, or leaves the old one."""

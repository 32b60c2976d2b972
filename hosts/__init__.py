"""Hosts with their agents, networks and volumes."""

"""Workspaces: desired specs, observed states, and the agents' control plane."""

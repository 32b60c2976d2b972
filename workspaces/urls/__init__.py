"""Workspaces' URLs through the server: a request, who may send it, and its way to the agent."""

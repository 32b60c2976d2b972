"""Logs, exec and attach of a workspace: browser and script on one side, the agent on the other."""

"""REST endpoints of workspaces."""

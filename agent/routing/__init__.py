"""Routes of workspaces' URLs for a router on the host; pure."""

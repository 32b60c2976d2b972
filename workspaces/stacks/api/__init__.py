"""REST endpoints of stacks, and their webhooks."""

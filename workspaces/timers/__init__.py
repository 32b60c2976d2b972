"""What stops and starts workspaces without a person: schedules, and having been idle too long."""

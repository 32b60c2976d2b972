"""What the agent reads over HTTP on a user's behalf, from judged addresses only."""

"""The agent's loops: poll, cycle, heartbeat, report, and two listeners, joined by small values."""

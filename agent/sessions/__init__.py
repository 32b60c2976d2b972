"""Realtime sessions: logs, exec and attach, each in threads of its own beside the reconciler."""

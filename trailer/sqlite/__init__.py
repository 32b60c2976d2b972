"""SQLite for a server of many threads; Django finds the engine in base.py."""

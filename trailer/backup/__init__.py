"""Backup of the database and its keys into one file, and the way back."""

"""The only place that talks to git."""

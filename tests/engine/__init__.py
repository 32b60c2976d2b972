"""Tests against a real Docker engine."""

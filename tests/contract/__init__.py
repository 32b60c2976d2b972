"""Tests that the API keeps its published contract."""

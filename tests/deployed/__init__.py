"""Tests of deploy/compose.yaml as a whole, in containers."""

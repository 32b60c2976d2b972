"""Tests of the agent, without an engine."""

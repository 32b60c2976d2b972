"""Tests of workspaces and stacks."""

"""Tests of workspaces' URLs through the server."""

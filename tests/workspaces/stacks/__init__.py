"""Tests of stacks: queue, syncs, services, endpoints."""

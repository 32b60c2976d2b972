"""Tests of schedules and idle stops."""

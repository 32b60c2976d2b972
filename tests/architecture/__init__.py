"""Tests of the code's own rules."""

"""Tests of the whole product on a real Docker engine."""

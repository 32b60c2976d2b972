"""Tests of set-up."""

"""Tests of websockets and live updates."""

"""A number and its noun, as sentences of agent and server say them."""

from __future__ import annotations


def counted(number: float, noun: str) -> str:
    """`1 build`, `2 builds`, `0.5 seconds`."""
    return f"{number:g} {noun}" if number == 1 else f"{number:.15g} {noun}s"

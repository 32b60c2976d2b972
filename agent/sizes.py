"""A number of bytes in words."""

from __future__ import annotations

from agent.protocol.counting import counted

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


def in_words(count: int) -> str:
    size, unit = float(count), 0
    while size >= 1024 and unit < len(_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return counted(count, "byte") if unit == 0 else f"{size:.1f} {_UNITS[unit]}"

"""Checks of single values; each returns the clean value or refuses with a sentence.

They are strict on purpose: a boolean is no integer, a number is no string, and nothing is coerced,
so what a caller reads back is what it sent.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from trailer.errors import Invalid

if TYPE_CHECKING:
    from collections.abc import Collection

MAX_ENTRIES: Final = 256
MAX_TEXT_BYTES: Final = 64 * 1024
MAX_INTEGER: Final = 2**63 - 1
_MIB: Final = 1024 * 1024


def text(value: Any, path: str, *, max_length: int | None = None) -> str:
    if not isinstance(value, str):
        raise Invalid.field(path, f"{path} must be text.")
    if "\0" in value:
        raise Invalid.field(path, f"{path} may not hold NUL characters.")
    try:
        size = len(value.encode())
    except UnicodeEncodeError as error:
        raise Invalid.field(path, f"{path} must be valid Unicode.") from error
    if size > MAX_TEXT_BYTES:
        raise Invalid.field(path, f"{path} is longer than 64 KiB.")
    if max_length is not None and len(value) > max_length:
        raise Invalid.field(path, f"{path} is longer than {max_length} characters.")
    return value


def integer(value: Any, path: str, *, least: int, most: int = MAX_INTEGER) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise Invalid.field(path, f"{path} must be a whole number.")
    if not least <= value <= most:
        low, high = _shown(least, path), _shown(most, path)
        limits = f"between {low} and {high}" if most < MAX_INTEGER else f"at least {low}"
        if value > MAX_INTEGER:
            limits = "smaller: this number is too large"
        raise Invalid.field(path, f"{path} must be {limits}.")
    return value


def _shown(limit: int, path: str) -> str:
    """People think of sizes in MiB."""
    if path.endswith("_bytes") and limit and limit % _MIB == 0:
        return f"{limit // _MIB} MiB ({limit} bytes)"
    return str(limit)


def number(value: Any, path: str, *, least: float, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise Invalid.field(path, f"{path} must be a number.")
    # The comparison comes first: an int too large for a float would overflow the conversion.
    if not least <= value <= most or not math.isfinite(value):
        raise Invalid.field(path, f"{path} must be between {least:g} and {most:g}.")
    return round(float(value), 3)


def boolean(value: Any, path: str) -> bool:
    if not isinstance(value, bool):
        raise Invalid.field(path, f"{path} must be true or false.")
    return value


def choice(value: Any, path: str, choices: Collection[str]) -> str:
    if not isinstance(value, str) or value not in choices:
        raise Invalid.field(path, f"{path} must be one of: {', '.join(choices)}.")
    return str(value)


def identifier(value: Any, path: str) -> UUID:
    if isinstance(value, UUID):
        return value
    try:
        return UUID(text(value, path, max_length=45))
    except ValueError as error:
        raise Invalid.field(path, f"{path} must be an id (a UUID).") from error


def entries(value: Any, path: str) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise Invalid.field(path, f"{path} must be a list.")
    if len(value) > MAX_ENTRIES:
        raise Invalid.field(path, f"{path} has more than {MAX_ENTRIES} entries.")
    return list(value)


def mapping(value: Any, path: str) -> dict[str, Any]:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise Invalid.field(path, f"{path} must be an object of names and values.")
    if len(value) > MAX_ENTRIES:
        raise Invalid.field(path, f"{path} has more than {MAX_ENTRIES} entries.")
    return value


def record(value: Any, path: str, *, known: Collection[str]) -> dict[str, Any]:
    """An object with a fixed set of keys: a misspelt one is named, never silently lost."""
    given = mapping(value, path)
    for name in sorted(set(given) - set(known)):
        raise Invalid.field(
            f"{path}.{name[:80]}", f"{path} has no key {name[:80]}. Known: {', '.join(known)}."
        )
    return given


def required(given: dict[str, Any], key: str, path: str) -> Any:
    if given.get(key) is None:
        raise Invalid.field(f"{path}.{key}", f"{path} needs {key}.")
    return given[key]

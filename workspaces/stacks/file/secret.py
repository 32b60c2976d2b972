"""A value that may travel through the code but never shows itself."""

from __future__ import annotations

from typing import Final

_MASK: Final = "***"


class Secret:
    """Printing, formatting, logging or serialising it gives a mask; `reveal` gives the value."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        return self._value

    def __str__(self) -> str:
        return _MASK

    def __repr__(self) -> str:
        return f"Secret({_MASK})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._value == other._value

    def __hash__(self) -> int:
        return hash((Secret, self._value))

    def __bool__(self) -> bool:
        return bool(self._value)

    def __reduce__(self) -> str:
        raise TypeError("A secret is not pickled: store it encrypted (trailer.secrets).")

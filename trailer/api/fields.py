"""Input fields that take JSON types as they are: no number becomes text, no text a number."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from trailer.validation import TEXT_LIMIT

_INTEGER = 2**63 - 1


class Text(serializers.CharField):
    """At most 64 KiB unless told otherwise; kept exactly as sent."""

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("max_length", TEXT_LIMIT)
        kwargs.setdefault("trim_whitespace", False)
        super().__init__(**kwargs)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class OptionalText(Text):
    """May be left empty."""

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("allow_blank", True)
        kwargs.setdefault("required", False)
        super().__init__(**kwargs)


class Whole(serializers.IntegerField):
    """A JSON integer that databases can store."""

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("min_value", 0)
        kwargs.setdefault("max_value", _INTEGER)
        super().__init__(**kwargs)

    def to_internal_value(self, data: Any) -> int:
        if not isinstance(data, int) or isinstance(data, bool):
            self.fail("invalid")
        return data


class Flag(serializers.BooleanField):
    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


class Choice(serializers.ChoiceField):
    """A choice by its exact text; lists and objects are refused instead of hashed."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid_choice", input=data)
        return str(super().to_internal_value(data))


class Identifier(serializers.UUIDField):
    """A UUID as text; the number form that UUIDField also takes is not in the contract."""

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, str):
            self.fail("invalid", value=data)
        return super().to_internal_value(data)

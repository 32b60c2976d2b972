"""Base of all input serializers: unknown and read-only fields are named, not ignored."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers


class StrictSerializer(serializers.Serializer[Any]):
    """Refuses what it does not know, so that a misspelt field is never silently lost."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, dict):
            known = {name for name, field in self.fields.items() if not field.read_only}
            unknown = sorted(set(data) - known)
            if unknown:
                raise serializers.ValidationError(
                    {name: ["There is no such field, or it can't be written."] for name in unknown}
                )
        return super().to_internal_value(data)


class NoInput(StrictSerializer):
    """The body of actions that take no fields; whatever is sent is refused by name."""

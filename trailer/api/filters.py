"""Filters that several lists share; a malformed value is refused with 400, never ignored."""

from __future__ import annotations

from typing import Any

from django_filters import rest_framework as filters


class FlagFilter(filters.TypedChoiceFilter):  # type: ignore[misc]
    """true or false; the stock filter silently ignores anything else."""

    def __init__(self, field_name: str | None = None, **kwargs: Any) -> None:
        words = ("true", "false")
        super().__init__(
            field_name,
            choices=[(word, word) for word in words],
            coerce=lambda text: text == "true",
            **kwargs,
        )


class NameFilter(filters.FilterSet):  # type: ignore[misc]
    name = filters.CharFilter(field_name="name")


class OnHostFilter(NameFilter):
    """For everything that belongs to one host."""

    host = filters.UUIDFilter(field_name="host_id")

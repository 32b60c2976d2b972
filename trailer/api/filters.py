"""Filters that several lists share; a malformed value is refused with 400, never ignored."""

from __future__ import annotations

from django_filters import rest_framework as filters


class NameFilter(filters.FilterSet):  # type: ignore[misc]
    name = filters.CharFilter(field_name="name")


class OnHostFilter(NameFilter):
    """For everything that belongs to one host."""

    host = filters.UUIDFilter(field_name="host_id")

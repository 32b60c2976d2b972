"""Filters of the lists of registries and images."""

from __future__ import annotations

from django_filters import rest_framework as filters

from images.choices import BuildStatus, ImageKind
from trailer.api.filters import FlagFilter, OnHostFilter


class ImageFilter(OnHostFilter):
    status = filters.ChoiceFilter(choices=BuildStatus.choices)
    kind = filters.ChoiceFilter(choices=ImageKind.choices)
    registry = filters.UUIDFilter(field_name="registry_id")
    enabled = FlagFilter()


class RegistryFilter(filters.FilterSet):  # type: ignore[misc]
    server = filters.CharFilter()
    username = filters.CharFilter()

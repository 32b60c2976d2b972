"""Filters of the list of stacks."""

from __future__ import annotations

from django_filters import rest_framework as filters

from trailer.api.filters import FlagFilter, OnHostFilter
from workspaces.stacks.choices import StackStatus


class StackFilter(OnHostFilter):
    status = filters.ChoiceFilter(choices=StackStatus.choices)
    enabled = FlagFilter()
    repository = filters.CharFilter(field_name="repository")

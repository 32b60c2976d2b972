"""Filters and ordering of the workspace list; a value without meaning is refused, not ignored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django_filters import rest_framework as filters
from rest_framework.exceptions import ValidationError
from rest_framework.filters import OrderingFilter

from trailer.api.filters import OnHostFilter
from workspaces.choices import WorkspaceStatus

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.db.models import QuerySet
    from rest_framework.request import Request
    from rest_framework.views import APIView


class WorkspaceFilter(OnHostFilter):
    image = filters.UUIDFilter(field_name="image_id")
    stack = filters.UUIDFilter(field_name="stack")
    status = filters.ChoiceFilter(
        field_name="effective_status", choices=WorkspaceStatus.choices, label="Status as shown."
    )


class WorkspaceOrdering(OrderingFilter):
    """`status` means the status as shown, which is no column of its own."""

    _columns: ClassVar = {
        "name": "name",
        "status": "effective_status",
        "created_at": "created_at",
        "updated_at": "updated_at",
    }

    def get_valid_fields(
        self, queryset: QuerySet[Any], view: APIView, context: Any = None
    ) -> list[tuple[str, str]]:
        return [(name, name) for name in self._columns]

    def remove_invalid_fields(
        self, queryset: QuerySet[Any], fields: Iterable[str], view: APIView, request: Request
    ) -> list[str]:
        terms = list(fields)
        if any(term.removeprefix("-") not in self._columns for term in terms):
            known = ", ".join(self._columns)
            raise ValidationError({"ordering": [f"Lists can be ordered by: {known}."]})
        return [
            ("-" if term.startswith("-") else "") + self._columns[term.removeprefix("-")]
            for term in terms
        ]

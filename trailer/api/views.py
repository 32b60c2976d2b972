"""Base of the API's resources: lists and objects come from what the caller may see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from django.db.models import Model, QuerySet
from rest_framework import mixins, viewsets
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.response import Response

from trailer import policy
from trailer.access.models import ObjectKind
from trailer.api.revision import expected_revision

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from rest_framework.parsers import BaseParser
    from rest_framework.renderers import BaseRenderer
    from rest_framework.request import Request
    from rest_framework.serializers import BaseSerializer

M = TypeVar("M", bound=Model)


class ResourceViewSet(
    mixins.ListModelMixin,
    mixins.RetrieveModelMixin,
    viewsets.GenericViewSet[M],
    Generic[M],
):
    """`serializer_class` writes answers; each action names the serializer of its own input.

    Objects take no PUT: changes are partial, so that a client never resets what it does not know.
    Only lists that are replaced as a whole do.
    """

    http_method_names = ("get", "post", "put", "patch", "delete", "head", "options")

    def get_queryset(self) -> QuerySet[M]:
        queryset = super().get_queryset()
        kind, user = queryset.model._meta.model_name or "", self.request.user
        rows = queryset.filter(policy.visible(kind, user))
        return rows.annotate(**policy.role_columns(kind, user)) if kind in ObjectKind else rows

    def given(self, serializer_class: type[BaseSerializer[Any]]) -> dict[str, Any]:
        """The validated body; on PATCH only what was sent."""
        partial = self.request.method == "PATCH"
        serializer = serializer_class(data=self.request.data, partial=partial)
        serializer.is_valid(raise_exception=True)
        data: dict[str, Any] = serializer.validated_data
        return data

    @property
    def seen_revision(self) -> int | None:
        return expected_revision(self.request)

    def answer(self, pk: UUID, status: int = 200) -> Response:
        """The object as everybody reads it, after a change."""
        row = self.get_queryset().get(pk=pk)
        return Response(self.get_serializer(row).data, status=status)


class JsonWhateverIsAccepted(BaseContentNegotiation):
    """For answers that are not JSON but fail in it: Accept must not turn them into 406."""

    def select_parser(self, request: Request, parsers: Iterable[BaseParser]) -> BaseParser:
        return next(iter(parsers))

    def select_renderer(
        self,
        request: Request,
        renderers: Iterable[BaseRenderer],
        format_suffix: str | None = None,
    ) -> tuple[BaseRenderer, str]:
        renderer = next(iter(renderers))
        return renderer, str(renderer.media_type)

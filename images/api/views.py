"""Endpoints of registries, images and builds: parse, call one service, answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.db.models import Prefetch
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import mixins, viewsets
from rest_framework.decorators import action
from rest_framework.response import Response

from hosts.models import Host
from hosts.selectors import host_for
from images.api import filters, inputs, outputs
from images.models import Build, BuildSecret, Image, Registry
from images.selectors import builds_of, registry_for, unused_images, with_current_build
from images.services.images import (
    image_build,
    image_cancel,
    image_check,
    image_create,
    image_delete,
    image_update,
)
from images.services.logs import build_log_read
from images.services.registries import registry_create, registry_delete, registry_update
from images.services.registry_tests import registry_test
from images.services.transfer import image_transfer
from trailer.access.api.views import (
    EvictMixin,
    GrantsMixin,
    TransferMixin,
    evicts,
    transfers,
)
from trailer.api.schema import IF_MATCH
from trailer.api.serializers import NoInput
from trailer.api.views import JsonWhateverIsAccepted, ResourceViewSet
from trailer.errors import Invalid

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from rest_framework.request import Request


class RegistryViewSet(ResourceViewSet[Registry]):
    queryset = Registry.objects.select_related("owner", "test__host")
    serializer_class = outputs.RegistryOutput
    filterset_class = filters.RegistryFilter
    search_fields: ClassVar = ["server", "username"]
    ordering_fields: ClassVar = ["server", "username", "created_at", "updated_at"]

    @extend_schema(request=inputs.RegistryInput, responses={201: outputs.RegistryOutput})
    def create(self, request: Request) -> Response:
        registry = registry_create(actor=request.user, **self.given(inputs.RegistryInput))
        return self.answer(registry.pk, 201)

    @extend_schema(request=inputs.RegistryInput, responses=outputs.RegistryOutput)
    def partial_update(self, request: Request, pk: str) -> Response:
        data = self.given(inputs.RegistryInput)
        registry = registry_update(actor=request.user, registry=self.get_object(), **data)
        return self.answer(registry.pk)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        registry_delete(actor=request.user, registry=self.get_object())
        return Response(status=204)

    @extend_schema(request=inputs.RegistryTestInput, responses={202: outputs.RegistryOutput})
    @action(detail=True, methods=["post"])
    def test(self, request: Request, pk: str) -> Response:
        """Have a host sign in with the credential; the answer follows in `status`."""
        data = self.given(inputs.RegistryTestInput)
        wanted = data.get("host")
        registry = registry_test(
            actor=request.user,
            registry=self.get_object(),
            host=host_for(actor=request.user, host_id=wanted) if wanted else None,
        )
        return self.answer(registry.pk, 202)


@evicts
@transfers(outputs.ImageOutput)
class ImageViewSet(GrantsMixin, EvictMixin, TransferMixin, ResourceViewSet[Image]):
    transfer_service = staticmethod(image_transfer)
    queryset = Image.objects.select_related("host", "owner")
    serializer_class = outputs.ImageOutput
    filterset_class = filters.ImageFilter
    search_fields: ClassVar = ["name", "reference", "host__name"]
    ordering_fields: ClassVar = ["name", "host__name", "status", "created_at", "updated_at"]

    def get_queryset(self) -> QuerySet[Image]:
        rows = with_current_build(super().get_queryset())
        if self.action == "builds":
            # Who reads the history reads nothing of the image itself.
            return rows
        # nosemgrep: unscoped-read (of the images that the user may see)
        names = BuildSecret.objects.only("image_id", "name")
        return rows.prefetch_related(Prefetch("build_secrets", queryset=names))

    @extend_schema(request=inputs.ImageInput, responses={201: outputs.ImageOutput})
    def create(self, request: Request) -> Response:
        """The first build or pull is queued at once."""
        data = self._with_registry(self.given(inputs.ImageInput))
        host = host_for(actor=request.user, host_id=data.pop("host"))
        image = image_create(actor=request.user, host=host, **data)
        return self.answer(image.pk, 201)

    @extend_schema(
        request=inputs.ImageUpdateInput, responses=outputs.ImageOutput, parameters=[IF_MATCH]
    )
    def partial_update(self, request: Request, pk: str) -> Response:
        """A change of what the image is made from queues a new build."""
        image = self.get_object()
        image = image_update(
            actor=request.user,
            image=image,
            expected_revision=self.seen_revision,
            **self._with_registry(self.given(inputs.ImageUpdateInput)),
        )
        return self.answer(image.pk)

    @extend_schema(responses={204: None}, parameters=[IF_MATCH])
    def destroy(self, request: Request, pk: str) -> Response:
        image_delete(
            actor=request.user, image=self.get_object(), expected_revision=self.seen_revision
        )
        return Response(status=204)

    @extend_schema(request=NoInput, responses={202: outputs.ImageOutput}, parameters=[IF_MATCH])
    @action(detail=True, methods=["post"])
    def build(self, request: Request, pk: str) -> Response:
        """Build or pull again."""
        self.given(NoInput)
        image = image_build(
            actor=request.user, image=self.get_object(), expected_revision=self.seen_revision
        )
        return self.answer(image.pk, 202)

    @extend_schema(request=NoInput, responses={202: outputs.ImageOutput}, parameters=[IF_MATCH])
    @action(detail=True, methods=["post"])
    def cancel(self, request: Request, pk: str) -> Response:
        """Ask the agent to end the build or pull that is under way."""
        self.given(NoInput)
        image = image_cancel(
            actor=request.user, image=self.get_object(), expected_revision=self.seen_revision
        )
        return self.answer(image.pk, 202)

    @extend_schema(request=NoInput, responses={202: outputs.ImageOutput}, parameters=[IF_MATCH])
    @action(detail=True, methods=["post"])
    def check(self, request: Request, pk: str) -> Response:
        """Compare with the registry now; what is newer is pulled, as the update policy says."""
        self.given(NoInput)
        image = image_check(
            actor=request.user, image=self.get_object(), expected_revision=self.seen_revision
        )
        return self.answer(image.pk, 202)

    @extend_schema(responses=outputs.BuildOutput(many=True), filters=False)
    @action(detail=True, serializer_class=outputs.BuildOutput, filter_backends=[])
    def builds(self, request: Request, pk: str) -> Response:
        """The history, newest first."""
        rows: Any = builds_of(actor=request.user, image=self.get_object())
        page: list[Build] | None = self.paginate_queryset(rows)
        return self.get_paginated_response(outputs.BuildOutput(page, many=True).data)

    def _with_registry(self, data: dict[str, Any]) -> dict[str, Any]:
        if data.get("registry") is None:
            return data
        registry = registry_for(actor=self.request.user, registry_id=data["registry"])
        return data | {"registry": registry}


class BuildViewSet(mixins.RetrieveModelMixin, viewsets.GenericViewSet[Build]):
    queryset = Build.objects.select_related("actor", "image__host")
    serializer_class = outputs.BuildOutput

    def get_queryset(self) -> QuerySet[Build]:
        queryset: Any = super().get_queryset()
        visible: QuerySet[Build] = queryset.visible_to(self.request.user)
        return visible

    @extend_schema(
        parameters=[
            OpenApiParameter("offset", int, description="Byte to begin at; 0 by default."),
            *(
                OpenApiParameter(
                    name, kind, OpenApiParameter.HEADER, response=[200], description=text
                )
                for name, kind, text in (
                    ("Trailer-Log-Offset", int, "Byte to continue from."),
                    ("Trailer-Log-Complete", bool, "Whether that was the end."),
                )
            ),
        ],
        responses={(200, "text/plain"): OpenApiResponse(OpenApiTypes.STR)},
    )
    @action(
        detail=True,
        filter_backends=[],
        pagination_class=None,
        content_negotiation_class=JsonWhateverIsAccepted,
    )
    def log(self, request: Request, pk: str) -> HttpResponse:
        """Output from a byte offset on; while the build runs, ask again from the answered one."""
        text = request.query_params.get("offset", "0")
        if not (text.isascii() and text.isdecimal()) or len(text) > 18:
            raise Invalid.field("offset", "offset must be a number of bytes, 0 or more.")
        output, following, complete = build_log_read(self.get_object(), int(text))
        return HttpResponse(
            output.decode(errors="replace"),
            content_type="text/plain; charset=utf-8",
            headers={
                "Trailer-Log-Offset": str(following),
                "Trailer-Log-Complete": "true" if complete else "false",
            },
        )


class HostImagesViewSet(viewsets.GenericViewSet[Host]):
    """What hosts, which know nothing of images, can't answer themselves."""

    queryset = Host.objects.all()

    def get_queryset(self) -> QuerySet[Host]:
        return Host.objects.visible_to(self.request.user)

    @extend_schema(
        responses=outputs.UnusedImagesOutput,
        parameters=[OpenApiParameter("page", int), OpenApiParameter("page_size", int)],
        filters=False,
    )
    @action(detail=True, url_path="unused-images", filter_backends=[])
    def unused_images(self, request: Request, pk: str) -> Response:
        """Images that no workspace and no stored revision of one refers to, largest first."""
        unused = unused_images(actor=request.user, host=self.get_object())
        rows: Any = unused.images
        page: list[Any] | None = self.paginate_queryset(rows)
        answer = self.get_paginated_response(outputs.UnusedImageOutput(page, many=True).data)
        answer.data["total_bytes"] = unused.total_bytes
        return answer

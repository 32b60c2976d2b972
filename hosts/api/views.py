"""Endpoints of hosts, networks and volumes: parse, call one service, answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.decorators import action
from rest_framework.response import Response

from hosts.api import filters, inputs, outputs
from hosts.api.metrics import HostMetricsMixin
from hosts.models import Cycle, Host, Network, Volume
from hosts.selectors import cycles_of, host_for, leftovers_of
from hosts.services.enrolment import enrolment_create
from hosts.services.hosts import host_confirm_state, host_create, host_delete, host_update
from hosts.services.networks import network_create, network_delete, network_update
from hosts.services.revocation import host_revoke
from hosts.services.transfer import network_transfer, volume_transfer
from hosts.services.volumes import volume_acknowledge, volume_create, volume_delete
from trailer.access.api.views import (
    CapabilitiesMixin,
    EvictMixin,
    GrantsMixin,
    TransferMixin,
    evicts,
    transfers,
)
from trailer.api.permissions import AdminScopeToChange, SignedInWithScope
from trailer.api.schema import IF_MATCH
from trailer.api.serializers import NoInput
from trailer.api.views import ResourceViewSet

if TYPE_CHECKING:
    from rest_framework.request import Request


class HostViewSet(CapabilitiesMixin, HostMetricsMixin, ResourceViewSet[Host]):
    queryset = Host.objects.prefetch_related("gpu_holds__workspace")
    serializer_class = outputs.HostOutput
    permission_classes = (SignedInWithScope, AdminScopeToChange)
    filterset_class = filters.HostFilter
    search_fields: ClassVar = ["name", "description"]
    ordering_fields: ClassVar = ["name", "last_heartbeat", "created_at", "updated_at"]

    @extend_schema(request=inputs.HostInput, responses={201: outputs.HostOutput})
    def create(self, request: Request) -> Response:
        host = host_create(actor=request.user, **self.given(inputs.HostInput))
        return self.answer(host.pk, 201)

    @extend_schema(request=inputs.HostInput, responses=outputs.HostOutput, parameters=[IF_MATCH])
    def partial_update(self, request: Request, pk: str) -> Response:
        host = host_update(
            actor=request.user,
            host=self.get_object(),
            expected_revision=self.seen_revision,
            **self.given(inputs.HostInput),
        )
        return self.answer(host.pk)

    @extend_schema(responses={204: None}, parameters=[IF_MATCH])
    def destroy(self, request: Request, pk: str) -> Response:
        host_delete(
            actor=request.user, host=self.get_object(), expected_revision=self.seen_revision
        )
        return Response(status=204)

    @extend_schema(request=inputs.EnrolmentInput, responses={201: outputs.EnrolmentOutput})
    @action(detail=True, methods=["post"])
    def enrolment(self, request: Request, pk: str) -> Response:
        """A one-time token for the host's agent, and the line to paste there."""
        given = self.given(inputs.EnrolmentInput)
        made = enrolment_create(actor=request.user, host=self.get_object(), **given)
        return Response(outputs.EnrolmentOutput(made).data, status=201)

    @extend_schema(request=NoInput, responses={202: outputs.HostOutput})
    @action(detail=True, methods=["post"])
    def revoke(self, request: Request, pk: str) -> Response:
        """Shut the host's agent out, until one is enrolled anew. What the host runs stays."""
        self.given(NoInput)
        return self.answer(host_revoke(actor=request.user, host=self.get_object()).pk, 202)

    @extend_schema(responses=outputs.CycleOutput(many=True), filters=False)
    @action(
        detail=True,
        queryset=Host.objects.all(),
        serializer_class=outputs.CycleOutput,
        filter_backends=[],
    )
    def cycles(self, request: Request, pk: str) -> Response:
        """Recent cycles, newest first; their steps name everybody's workspaces."""
        rows: Any = cycles_of(actor=request.user, host=self.get_object())
        page: list[Cycle] | None = self.paginate_queryset(rows)
        return self.get_paginated_response(outputs.CycleOutput(page, many=True).data)

    @extend_schema(responses=outputs.LeftoverOutput(many=True), filters=False)
    @action(detail=True, serializer_class=outputs.LeftoverOutput, filter_backends=[])
    def leftovers(self, request: Request, pk: str) -> Response:
        """What the agent found on the host and leaves alone: foreign, impostor or unclaimed."""
        rows: Any = leftovers_of(actor=request.user, host=self.get_object())
        page: list[Any] | None = self.paginate_queryset(rows)
        return self.get_paginated_response(outputs.LeftoverOutput(page, many=True).data)

    @extend_schema(request=NoInput, responses={202: outputs.HostOutput})
    @action(detail=True, methods=["post"], url_path="confirm-state")
    def confirm_state(self, request: Request, pk: str) -> Response:
        """Let the agent carry out removals that it holds back as suspiciously many."""
        self.given(NoInput)
        host = host_confirm_state(actor=request.user, host=self.get_object())
        return self.answer(host.pk, 202)


@evicts
@transfers(outputs.NetworkOutput)
class NetworkViewSet(GrantsMixin, EvictMixin, TransferMixin, ResourceViewSet[Network]):
    transfer_service = staticmethod(network_transfer)
    queryset = Network.objects.select_related("host", "owner")
    serializer_class = outputs.NetworkOutput
    filterset_class = filters.NetworkFilter
    search_fields: ClassVar = ["name", "host__name"]
    ordering_fields: ClassVar = ["name", "host__name", "status", "created_at", "updated_at"]

    @extend_schema(request=inputs.NetworkInput, responses={201: outputs.NetworkOutput})
    def create(self, request: Request) -> Response:
        data = self.given(inputs.NetworkInput)
        host = host_for(actor=request.user, host_id=data.pop("host"))
        network = network_create(actor=request.user, host=host, **data)
        return self.answer(network.pk, 201)

    @extend_schema(
        request=inputs.NetworkInput, responses=outputs.NetworkOutput, parameters=[IF_MATCH]
    )
    def partial_update(self, request: Request, pk: str) -> Response:
        """Engines can't change a network: any other value than the present one is refused."""
        data = self.given(inputs.NetworkInput)
        if "host" in data:
            data["host"] = host_for(actor=request.user, host_id=data["host"])
        network = network_update(
            actor=request.user,
            network=self.get_object(),
            expected_revision=self.seen_revision,
            **data,
        )
        return self.answer(network.pk)

    @extend_schema(responses={204: None}, parameters=[IF_MATCH])
    def destroy(self, request: Request, pk: str) -> Response:
        network_delete(
            actor=request.user, network=self.get_object(), expected_revision=self.seen_revision
        )
        return Response(status=204)


@evicts
@transfers(outputs.VolumeOutput)
class VolumeViewSet(GrantsMixin, EvictMixin, TransferMixin, ResourceViewSet[Volume]):
    """A volume has nothing to change: it is made and deleted."""

    transfer_service = staticmethod(volume_transfer)
    queryset = Volume.objects.select_related("host", "owner")
    serializer_class = outputs.VolumeOutput
    filterset_class = filters.VolumeFilter
    search_fields: ClassVar = ["name", "host__name", "source"]
    ordering_fields: ClassVar = ["name", "host__name", "status", "created_at", "updated_at"]

    @extend_schema(request=inputs.VolumeInput, responses={201: outputs.VolumeOutput})
    def create(self, request: Request) -> Response:
        data = self.given(inputs.VolumeInput)
        host = host_for(actor=request.user, host_id=data.pop("host"))
        volume = volume_create(actor=request.user, host=host, **data)
        return self.answer(volume.pk, 201)

    @extend_schema(request=NoInput, parameters=[IF_MATCH], responses=outputs.VolumeOutput)
    @action(detail=True, methods=["post"])
    def acknowledge(self, request: Request, pk: str) -> Response:
        """Take the notice off that its data is gone."""
        volume = self.get_object()
        self.given(NoInput)
        volume_acknowledge(actor=request.user, volume=volume, expected_revision=self.seen_revision)
        return self.answer(volume.pk)

    @extend_schema(
        responses={204: None},
        parameters=[
            IF_MATCH,
            OpenApiParameter(
                "confirm", str, description="The volume's name: its data goes for good."
            ),
        ],
    )
    def destroy(self, request: Request, pk: str) -> Response:
        volume_delete(
            actor=request.user,
            volume=self.get_object(),
            confirm=request.query_params.get("confirm", ""),
            expected_revision=self.seen_revision,
        )
        return Response(status=204)

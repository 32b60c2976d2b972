"""Endpoints of rollouts of the agent: start one, watch it, stop it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, viewsets
from rest_framework.decorators import action
from rest_framework.response import Response

from hosts.models import AgentRollout, RolloutHost
from hosts.services.rollouts import rollout_create, rollout_stop
from trailer import policy
from trailer.api.fields import Identifier, Text
from trailer.api.permissions import AdminScopeToChange, SignedInWithScope
from trailer.api.serializers import NoInput, StrictSerializer

if TYPE_CHECKING:
    from rest_framework.request import Request

_SHOWN = 20


class RolloutInput(StrictSerializer):
    image = Text(max_length=255)
    hosts = serializers.ListField(
        child=Identifier(), required=False, max_length=256, help_text="All, when absent."
    )


class RolloutHostOutput(serializers.ModelSerializer[RolloutHost]):
    name = serializers.CharField(source="host.name")

    class Meta:
        model = RolloutHost
        fields = ("host", "name", "wave", "status", "ordered_at", "message")
        read_only_fields = fields


class RolloutOutput(serializers.ModelSerializer[AgentRollout]):
    hosts = RolloutHostOutput(many=True)

    class Meta:
        model = AgentRollout
        fields = ("id", "image", "status", "message", "created_at", "finished_at", "hosts")
        read_only_fields = fields


class RolloutViewSet(viewsets.GenericViewSet[AgentRollout]):
    queryset = AgentRollout.objects.prefetch_related("hosts__host")
    serializer_class = RolloutOutput
    permission_classes = (SignedInWithScope, AdminScopeToChange)
    filter_backends = ()
    pagination_class = None

    @extend_schema(responses=RolloutOutput(many=True))
    def list(self, request: Request) -> Response:
        """The newest rollouts of the agent, with what became of each host."""
        policy.require(request.user, "host.create")
        return Response(RolloutOutput(self.get_queryset()[:_SHOWN], many=True).data)

    @extend_schema(request=RolloutInput, responses={201: RolloutOutput})
    def create(self, request: Request) -> Response:
        """One host first, then a quarter, then the rest; the first failure ends it."""
        body = RolloutInput(data=request.data)
        body.is_valid(raise_exception=True)
        made = rollout_create(actor=request.user, **body.validated_data)
        return self._answer(made, 201)

    @extend_schema(request=NoInput, responses={202: RolloutOutput})
    @action(detail=False, methods=["post"])
    def stop(self, request: Request) -> Response:
        """Order no further host."""
        return self._answer(rollout_stop(actor=request.user), 202)

    def _answer(self, rollout: Any, status: int) -> Response:
        return Response(RolloutOutput(rollout).data, status=status)

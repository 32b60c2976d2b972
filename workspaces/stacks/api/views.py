"""Stacks over REST: each method reads the body, calls one service and renders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import viewsets
from rest_framework.decorators import action
from rest_framework.mixins import RetrieveModelMixin
from rest_framework.response import Response

from hosts.selectors import host_for
from trailer.access.api.views import GrantsMixin, TransferMixin, transfers
from trailer.api.schema import IF_MATCH
from trailer.api.serializers import NoInput
from trailer.errors import Invalid
from workspaces.api.serializers import ReplaceLossesSerializer
from workspaces.services.loss import replace_body
from workspaces.stacks.api import inputs, outputs
from workspaces.stacks.api.filters import StackFilter
from workspaces.stacks.api.source import SourceMixin
from workspaces.stacks.models import Stack, Sync
from workspaces.stacks.selectors import stack_views
from workspaces.stacks.services.actions import stack_deploy, stack_rollback, stack_sync
from workspaces.stacks.services.plan import (
    stack_deploy_plan,
    stack_rollback_plan,
    stack_settings_plan,
)
from workspaces.stacks.services.stacks import stack_create, stack_delete, stack_update
from workspaces.stacks.services.transfer import stack_transfer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from uuid import UUID

    from django.db.models import QuerySet
    from rest_framework.request import Request

    from workspaces.stacks.services.plan import StackPlan

_run = extend_schema(request=NoInput, parameters=[IF_MATCH], responses={202: outputs.StackOutput})

_planned = extend_schema(request=NoInput, responses={200: ReplaceLossesSerializer})


def _losses(plan: StackPlan) -> Response:
    return Response(ReplaceLossesSerializer(replace_body(plan.losses, plan.problem)).data)


@transfers(outputs.StackOutput)
class StackViewSet(GrantsMixin, TransferMixin, SourceMixin):
    """Stacks: what a git repository says should run on a host."""

    transfer_service = staticmethod(stack_transfer)
    queryset = Stack.objects.select_related("host", "owner", "deployed")
    serializer_class = outputs.StackOutput
    filterset_class = StackFilter
    search_fields: ClassVar = ["name", "description", "repository", "host__name"]
    ordering_fields: ClassVar = ["name", "status", "host__name", "created_at", "updated_at"]

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        page = self.paginate_queryset(self.filter_queryset(self.get_queryset()))
        return self.get_paginated_response(self._rendered(page or []))

    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return Response(self._rendered([self.get_object()])[0])

    @extend_schema(request=inputs.StackInput, responses={201: outputs.StackOutput})
    def create(self, request: Request) -> Response:
        """Create a stack; its first sync begins at once."""
        data = self.given(inputs.StackInput)
        host = host_for(actor=request.user, host_id=data.pop("host"))
        stack = stack_create(actor=request.user, host=host, **data)
        return self.answer(stack.pk, 201)

    @extend_schema(request=inputs.StackInput, responses=outputs.StackOutput, parameters=[IF_MATCH])
    def partial_update(self, request: Request, pk: str) -> Response:
        """Change some fields; another source or other variables begin a sync."""
        stack, data = self.get_object(), self.given(inputs.StackInput)
        _check_fixed(stack, data)
        stack_update(actor=request.user, stack=stack, expected_revision=self.seen_revision, **data)
        return self.answer(stack.pk)

    @extend_schema(responses={204: None}, parameters=[IF_MATCH])
    def destroy(self, request: Request, pk: str) -> Response:
        """Delete a stack with its containers and networks; volumes and images stay."""
        stack_delete(
            actor=request.user, stack=self.get_object(), expected_revision=self.seen_revision
        )
        return Response(status=204)

    @_run
    @action(detail=True, methods=["post"])
    def deploy(self, request: Request, pk: str) -> Response:
        """Deploy the branch's newest commit, and pull the images again. Releases a rollback."""
        return self._run(stack_deploy)

    @_run
    @action(detail=True, methods=["post"])
    def sync(self, request: Request, pk: str) -> Response:
        """Look for changes, and deploy if there are any."""
        return self._run(stack_sync)

    @extend_schema(
        request=inputs.StackRollbackInput,
        parameters=[IF_MATCH],
        responses={202: outputs.StackOutput},
    )
    @action(detail=True, methods=["post"])
    def rollback(self, request: Request, pk: str) -> Response:
        """Go back to an earlier revision and stay there until a deploy."""
        stack, data = self.get_object(), self.given(inputs.StackRollbackInput)
        if "sync" in data:
            data["sync_id"] = data.pop("sync")
        stack_rollback(
            actor=request.user, stack=stack, expected_revision=self.seen_revision, **data
        )
        return self.answer(stack.pk, 202)

    @_planned
    @action(detail=True, methods=["post"], url_path="deploy/plan")
    def deploy_plan(self, request: Request, pk: str) -> Response:
        """Services that a deploy would take files from; asks the repository, saves nothing."""
        self.given(NoInput)
        return _losses(stack_deploy_plan(actor=request.user, stack=self.get_object()))

    @_planned
    @action(detail=True, methods=["post"], url_path="sync/plan")
    def sync_plan(self, request: Request, pk: str) -> Response:
        """Services that a sync would take files from; asks the repository, saves nothing."""
        self.given(NoInput)
        stack = self.get_object()
        return _losses(stack_deploy_plan(actor=request.user, stack=stack, forced=False))

    @_planned
    @action(detail=True, methods=["post"], url_path="settings/plan")
    def settings_plan(self, request: Request, pk: str) -> Response:
        """Services that other settings may take files from; saves nothing."""
        self.given(NoInput)
        return _losses(stack_settings_plan(actor=request.user, stack=self.get_object()))

    @extend_schema(request=inputs.StackRollbackPlanInput, responses={200: ReplaceLossesSerializer})
    @action(detail=True, methods=["post"], url_path="rollback/plan")
    def rollback_plan(self, request: Request, pk: str) -> Response:
        """Services that a rollback would take files from; saves nothing."""
        revision = self.given(inputs.StackRollbackPlanInput).get("revision")
        stack = self.get_object()
        return _losses(stack_rollback_plan(actor=request.user, stack=stack, revision=revision))

    @extend_schema(responses=outputs.SyncOutput(many=True), filters=False)
    @action(detail=True, filter_backends=[])
    def syncs(self, request: Request, pk: str) -> Response:
        """Every sync with its log, newest first."""
        rows = self.get_object().syncs.select_related("actor", "revision")
        return self._page(rows, outputs.SyncOutput)

    @extend_schema(responses=outputs.StackRevisionOutput(many=True), filters=False)
    @action(detail=True, filter_backends=[])
    def revisions(self, request: Request, pk: str) -> Response:
        """What was deployed, newest first; those with deployed_at can be rolled back to."""
        rows = self.get_object().revisions.select_related("stack")
        return self._page(rows, outputs.StackRevisionOutput)

    def answer(self, pk: UUID, status: int = 200) -> Response:
        return Response(self._rendered([self.get_queryset().get(pk=pk)])[0], status=status)

    def _run(self, service: Callable[..., Sync]) -> Response:
        stack = self.get_object()
        self.given(NoInput)
        service(actor=self.request.user, stack=stack, expected_revision=self.seen_revision)
        return self.answer(stack.pk, 202)

    def _rendered(self, stacks: Iterable[Stack]) -> Any:
        serializer = outputs.StackOutput(
            stack_views(stacks), many=True, context=self.get_serializer_context()
        )
        return serializer.data

    def _page(self, rows: QuerySet[Any], serializer: type[Any]) -> Response:
        page = self.paginate_queryset(rows)
        return self.get_paginated_response(serializer(page, many=True).data)


class SyncViewSet(RetrieveModelMixin, viewsets.GenericViewSet[Sync]):
    """One sync: what a webhook's answer links to."""

    serializer_class = outputs.SyncOutput
    queryset = Sync.objects.none()

    def get_queryset(self) -> QuerySet[Sync]:
        visible = Sync.objects.visible_to(self.request.user)
        return visible.select_related("actor", "revision")


def _check_fixed(stack: Stack, data: dict[str, Any]) -> None:
    """Containers, volumes and networks carry the stack's name on its host."""
    for name, present in (("name", stack.name), ("host", stack.host_id)):
        if name in data and data.pop(name) != present:
            raise Invalid.field(
                name, f"A stack keeps its {name}. Delete it and create it anew; volumes stay."
            )

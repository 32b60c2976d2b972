"""Workspaces over REST: each method reads the body, calls one service and renders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import msgspec
from django_filters.rest_framework import DjangoFilterBackend
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.decorators import action
from rest_framework.filters import SearchFilter
from rest_framework.response import Response

from images.services.snapshots import snapshots_of
from trailer import policy
from trailer.access.api.views import GrantsMixin, TransferMixin, transfers
from trailer.api.schema import IF_MATCH
from trailer.api.views import ResourceViewSet
from trailer.errors import Invalid
from workspaces import selectors, services
from workspaces.api.events import WorkspaceEventsMixin
from workspaces.api.filters import WorkspaceFilter, WorkspaceOrdering
from workspaces.api.inputs import (
    CloneInput,
    ExtendInput,
    ReplaceInput,
    RollbackInput,
    SnapshotInput,
    WorkspaceInput,
    WorkspaceUpdateInput,
)
from workspaces.api.logs import WorkspaceLogsMixin
from workspaces.api.metrics import WorkspaceMetricsMixin
from workspaces.api.serializers import (
    PlanSerializer,
    RevisionSerializer,
    SnapshotAnswerSerializer,
    SnapshotSerializer,
    WorkspaceSerializer,
)
from workspaces.models import Workspace
from workspaces.services.loss import loss_body
from workspaces.validation.fields import check_known

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.db.models import QuerySet
    from rest_framework.request import Request

_run = extend_schema(request=None, parameters=[IF_MATCH], responses={202: WorkspaceSerializer})
_replace = extend_schema(
    request=ReplaceInput, parameters=[IF_MATCH], responses={202: WorkspaceSerializer}
)


def _body(request: Request) -> dict[str, Any]:
    if not isinstance(request.data, dict):
        raise Invalid("The body must be a JSON object.")
    return request.data


def _planned(plan: services.Plan) -> Response:
    changes = msgspec.to_builtins(plan.changes)
    return Response(
        PlanSerializer({**vars(plan), **loss_body(plan.loss), "changes": changes}).data
    )


def _refusing(data: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """What the body asks for, and whether it refuses to lose files by it."""
    refuses = data.get("refuse_loss", False)
    if not isinstance(refuses, bool):
        raise Invalid.field("refuse_loss", "refuse_loss must be true or false.")
    return {name: data[name] for name in data if name != "refuse_loss"}, refuses


@transfers(WorkspaceSerializer)
class WorkspaceViewSet(
    WorkspaceEventsMixin,
    WorkspaceLogsMixin,
    WorkspaceMetricsMixin,
    GrantsMixin,
    TransferMixin,
    ResourceViewSet[Workspace],
):
    """Container workspaces: what should run, and what the host's agent last saw."""

    transfer_service = staticmethod(services.workspace_transfer)
    queryset = Workspace.objects.none()
    serializer_class = WorkspaceSerializer
    filter_backends = (DjangoFilterBackend, SearchFilter, WorkspaceOrdering)
    filterset_class = WorkspaceFilter
    search_fields = ("name", "description")

    def get_queryset(self) -> QuerySet[Workspace]:
        return selectors.workspaces_visible_to(self.request.user)

    @extend_schema(request=WorkspaceInput, responses={201: WorkspaceSerializer})
    def create(self, request: Request) -> Response:
        """Create a workspace; it is deployed at once unless desired_state is stopped."""
        workspace = services.workspace_create(actor=request.user, data=_body(request))
        return self._answer(workspace, status.HTTP_201_CREATED)

    @extend_schema(
        request=WorkspaceUpdateInput,
        parameters=[IF_MATCH],
        responses=WorkspaceSerializer,
    )
    def partial_update(self, request: Request, pk: str) -> Response:
        """Change some fields; what changes nothing keeps the revision."""
        workspace = self.get_object()
        data, refuses = _refusing(_body(request))
        workspace = services.workspace_update(
            actor=request.user,
            workspace=workspace,
            data=data,
            expected_revision=self.seen_revision,
            refuse_loss=refuses,
        )
        return self._answer(workspace, status.HTTP_200_OK)

    @extend_schema(
        parameters=[IF_MATCH],
        responses={204: None},
    )
    def destroy(self, request: Request, pk: str) -> Response:
        """Delete a workspace and its container; volumes and images stay."""
        services.workspace_delete(
            actor=request.user,
            workspace=self.get_object(),
            expected_revision=self.seen_revision,
        )
        return Response(status=status.HTTP_204_NO_CONTENT)

    @_replace
    @action(detail=True, methods=["post"])
    def start(self, request: Request, pk: str) -> Response:
        """Start; after an error: try again."""
        return self._replace(request, services.workspace_start)

    @_run
    @action(detail=True, methods=["post"])
    def stop(self, request: Request, pk: str) -> Response:
        """Stop; the container stays."""
        return self._run(request, services.workspace_stop)

    @_replace
    @action(detail=True, methods=["post"])
    def redeploy(self, request: Request, pk: str) -> Response:
        """Replace the container although nothing changed."""
        return self._replace(request, services.workspace_redeploy)

    @extend_schema(request=ReplaceInput, responses={200: PlanSerializer})
    @action(detail=True, methods=["post"], url_path="redeploy/plan")
    def redeploy_plan(self, request: Request, pk: str) -> Response:
        """What a redeploy would do, and which files would be gone; saves nothing."""
        workspace = self.get_object()
        check_known(_refusing(_body(request))[0], ())
        return _planned(services.redeploy_plan(actor=request.user, workspace=workspace))

    @extend_schema(
        request=SnapshotInput,
        parameters=[IF_MATCH],
        responses={202: SnapshotAnswerSerializer},
    )
    @action(detail=True, methods=["post"])
    def snapshot(self, request: Request, pk: str) -> Response:
        """Commit the running container's files to a new image; volumes are not part of it."""
        workspace, image = services.workspace_snapshot(
            actor=request.user,
            workspace=self.get_object(),
            data=_body(request),
            expected_revision=self.seen_revision,
        )
        body = {**self.get_serializer(workspace).data, "snapshot": str(image.pk)}
        return Response(body, status=status.HTTP_202_ACCEPTED)

    @extend_schema(
        request=ExtendInput,
        parameters=[IF_MATCH],
        responses={202: WorkspaceSerializer},
    )
    @action(detail=True, methods=["post"])
    def extend(self, request: Request, pk: str) -> Response:
        """Keep it running for some time, whatever its schedule and its idle stop say."""
        workspace = services.workspace_extend(
            actor=request.user,
            workspace=self.get_object(),
            data=_body(request),
            expected_revision=self.seen_revision,
        )
        return self._answer(workspace, status.HTTP_202_ACCEPTED)

    @extend_schema(
        request=CloneInput,
        parameters=[IF_MATCH],
        responses={202: WorkspaceSerializer},
    )
    @action(detail=True, methods=["post"])
    def clone(self, request: Request, pk: str) -> Response:
        """Copy to a new workspace, without host ports (on the same host) and without URLs."""
        workspace = services.workspace_clone(
            actor=request.user,
            workspace=self.get_object(),
            data=_body(request),
            expected_revision=self.seen_revision,
        )
        return self._answer(workspace, status.HTTP_202_ACCEPTED)

    @extend_schema(
        request=RollbackInput,
        parameters=[IF_MATCH],
        responses={202: WorkspaceSerializer},
    )
    @action(detail=True, methods=["post"])
    def rollback(self, request: Request, pk: str) -> Response:
        """Return to the fields of an earlier revision, secrets included."""
        workspace = self.get_object()
        data, refuses = _refusing(_body(request))
        check_known(data, ("revision",))
        workspace = services.workspace_rollback(
            actor=request.user,
            workspace=workspace,
            revision=data.get("revision"),
            expected_revision=self.seen_revision,
            refuse_loss=refuses,
        )
        return self._answer(workspace, status.HTTP_202_ACCEPTED)

    @extend_schema(
        request=WorkspaceUpdateInput(partial=True),
        responses={200: PlanSerializer},
    )
    @action(detail=True, methods=["post"])
    def plan(self, request: Request, pk: str) -> Response:
        """What a change would do, and which files would be gone; saves nothing."""
        workspace = self.get_object()
        data, _ = _refusing(_body(request))
        plan = services.workspace_plan(actor=request.user, workspace=workspace, data=data)
        return _planned(plan)

    @extend_schema(request=RollbackInput, responses={200: PlanSerializer})
    @action(detail=True, methods=["post"], url_path="rollback/plan")
    def rollback_plan(self, request: Request, pk: str) -> Response:
        """What a rollback would do; saves nothing."""
        workspace = self.get_object()
        data, _ = _refusing(_body(request))
        check_known(data, ("revision",))
        plan = services.rollback_plan(
            actor=request.user, workspace=workspace, revision=data.get("revision")
        )
        return _planned(plan)

    @extend_schema(
        filters=False,
        responses=RevisionSerializer(many=True),
    )
    @action(detail=True)
    def revisions(self, request: Request, pk: str) -> Response:
        """Every revision of the fields, newest first."""
        workspace = self.get_object()
        policy.require(request.user, "workspace.inspect", workspace)
        return self._page(selectors.workspace_revisions(workspace), RevisionSerializer)

    @extend_schema(
        filters=False,
        responses=SnapshotSerializer(many=True),
    )
    @action(detail=True)
    def snapshots(self, request: Request, pk: str) -> Response:
        """Every snapshot of it, newest first, also those that belong to somebody else. For its
        owner and administrators."""
        workspace = self.get_object()
        rows = snapshots_of(actor=request.user, workspace=workspace)
        return self._page(rows, SnapshotSerializer, owner_id=workspace.owner_id)

    def _run(self, request: Request, service: Callable[..., Workspace]) -> Response:
        workspace = self.get_object()
        check_known(_body(request), ())
        workspace = service(
            actor=request.user,
            workspace=workspace,
            expected_revision=self.seen_revision,
        )
        return self._answer(workspace, status.HTTP_202_ACCEPTED)

    def _replace(self, request: Request, service: Callable[..., Workspace]) -> Response:
        workspace = self.get_object()
        data, refuses = _refusing(_body(request))
        check_known(data, ())
        workspace = service(
            actor=request.user,
            workspace=workspace,
            expected_revision=self.seen_revision,
            refuse_loss=refuses,
        )
        return self._answer(workspace, status.HTTP_202_ACCEPTED)

    def _answer(self, workspace: Workspace, code: int) -> Response:
        return Response(self.get_serializer(workspace).data, status=code)

    def _page(self, rows: QuerySet[Any], serializer: type[Any], **context: Any) -> Response:
        page = self.paginate_queryset(cast("QuerySet[Workspace]", rows))
        return self.get_paginated_response(serializer(page, many=True, context=context).data)

"""The grants of an object and the capabilities on a host: lists that are replaced as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework.decorators import action
from rest_framework.response import Response

from trailer import policy
from trailer.access.api.serializers import (
    CapabilityInput,
    CapabilityListInput,
    CapabilityOutput,
    EvictInput,
    EvictOutput,
    GrantInput,
    GrantListInput,
    GrantOutput,
    TransferInput,
    UserOfObject,
)
from trailer.access.capabilities import capabilities_of, capabilities_replace
from trailer.access.grants import grants_of, grants_replace
from trailer.access.reliance import object_users
from trailer.api.schema import IF_MATCH

if TYPE_CHECKING:
    from collections.abc import Callable

    from rest_framework.request import Request


def transfers(answer: Any) -> Callable[[Any], Any]:
    """Describes the transfer action of a view set, whose answers are of this shape."""
    described = extend_schema(
        request=TransferInput, parameters=[IF_MATCH], responses={202: answer}
    )
    return extend_schema_view(transfer=described)


class GrantsMixin:
    """For resource view sets whose objects have an owner."""

    get_object: Any

    @extend_schema(responses=GrantOutput(many=True), filters=False)
    @action(detail=True, filter_backends=[], pagination_class=None)
    def grants(self, request: Request, pk: str) -> Response:
        """Who was given which role. For those who may share the object."""
        rows = grants_of(actor=request.user, obj=self.get_object())
        return Response(GrantOutput(rows, many=True).data)

    @extend_schema(request=GrantInput(many=True), responses=GrantOutput(many=True), filters=False)
    @grants.mapping.put
    def grants_replace(self, request: Request, pk: str) -> Response:
        """Replace the whole list; who is not in it loses access.

        Behind the grants the answer names, with the role null, those whose right is gone and whose
        workspaces still use the volume, network or image: what runs goes on, and nothing new is
        made or started with it. `…/evict/` stops one.
        """
        obj = self.get_object()
        # Before the body is judged: who may not share learns nothing from its errors.
        policy.require(request.user, f"{obj._meta.model_name}.share", obj)
        given = GrantListInput(data={"grants": _given(request.data)})
        given.is_valid(raise_exception=True)
        rows = grants_replace(actor=request.user, obj=obj, entries=given.validated_data["grants"])
        answer = list(GrantOutput(rows, many=True).data)
        # Who replaced the list may have taken this right from themselves.
        now = type(obj)._default_manager.get(pk=obj.pk)
        if policy.allows(request.user, f"{obj._meta.model_name}.share", now):
            answer += _still_using(obj)
        return Response(answer)


def _given(entries: Any) -> Any:
    """Without those that an earlier answer named as still using the object."""
    if not isinstance(entries, list):
        return entries
    return [
        entry
        for entry in entries
        if not (isinstance(entry, dict) and "still_uses" in entry and entry.get("role") is None)
    ]


def _still_using(obj: Any) -> list[dict[str, Any]]:
    return [
        {
            **dict.fromkeys(GrantOutput().fields),
            "user": str(user.pk),
            "username": user.username,
            "still_uses": UserOfObject(workspaces, many=True).data,
        }
        for user, workspaces in object_users().still_using(obj)
    ]


def evicts(kind: type[Any]) -> Any:
    """Describes the evict action of a view set."""
    described = extend_schema(request=EvictInput, responses={202: EvictOutput})
    return extend_schema_view(evict=described)(kind)


class EvictMixin:
    """For objects that workspaces of others may use."""

    get_object: Any
    given: Any

    @action(detail=True, methods=["post"])
    def evict(self, request: Request, pk: str) -> Response:
        """Stop one workspace and keep it down until the object is taken out of it."""
        obj = self.get_object()
        # Before the body is judged: who may not do it learns nothing from its errors.
        policy.require(request.user, f"{obj._meta.model_name}.evict", obj)
        workspace_id = self.given(EvictInput)["workspace"]
        workspace = object_users().evict(actor=request.user, obj=obj, workspace_id=workspace_id)
        return Response(EvictOutput(workspace).data, status=202)


class TransferMixin:
    """For resource view sets whose objects can be handed over; `transfer_service` does it, and
    takes the object under the name of its kind."""

    transfer_service: ClassVar[Callable[..., Any]]
    get_object: Any
    given: Any
    answer: Callable[..., Response]
    seen_revision: Any

    @action(detail=True, methods=["post"])
    def transfer(self, request: Request, pk: str) -> Response:
        """Hand over to another owner; the former one stays as a manager."""
        obj = self.get_object()
        kind = obj._meta.model_name
        # Before the body is judged: who may not hand over learns nothing of who has an account.
        policy.require(request.user, f"{kind}.transfer", obj)
        type(self).transfer_service(
            actor=request.user,
            **{kind: obj},
            **self.given(TransferInput),
            expected_revision=self.seen_revision,
        )
        return self.answer(obj.pk, 202)


class CapabilitiesMixin:
    """For hosts."""

    get_object: Any

    @extend_schema(responses=CapabilityOutput(many=True), filters=False)
    @action(detail=True, filter_backends=[], pagination_class=None)
    def access(self, request: Request, pk: str) -> Response:
        """Who may do what on the host, beyond what everybody may. For admins."""
        return Response(capabilities_of(actor=request.user, host=self.get_object()))

    @extend_schema(
        request=CapabilityInput(many=True), responses=CapabilityOutput(many=True), filters=False
    )
    @access.mapping.put
    def access_replace(self, request: Request, pk: str) -> Response:
        """Replace the whole list; who is not in it keeps no capability."""
        host = self.get_object()
        policy.require(request.user, "host.modify", host)
        given = CapabilityListInput(data={"access": request.data})
        given.is_valid(raise_exception=True)
        entries = given.validated_data["access"]
        return Response(capabilities_replace(actor=request.user, host=host, entries=entries))

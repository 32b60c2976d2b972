"""Quotas: one's own to read, those of users and groups for administrators to set.

Here and not with the accounts, because what is taken is counted from workspaces and images.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.views import APIView

from trailer.access.models import Quota
from trailer.access.quotas import quota_of, quota_replace
from trailer.accounts.models import User
from trailer.api.fields import Whole
from trailer.api.permissions import AdminOnly, SignedInWithScope
from trailer.api.serializers import StrictSerializer
from trailer.errors import NotFound
from workspaces.services.quota import quotas_told, usage_of

if TYPE_CHECKING:
    from django.db.models import Model
    from rest_framework.request import Request

_MOST_CPUS = 10_000
_COUNT = 2**31 - 1


class Amount(serializers.FloatField):
    """A JSON number; no text that looks like one."""

    def to_internal_value(self, data: Any) -> float:
        if not isinstance(data, int | float) or isinstance(data, bool):
            self.fail("invalid")
        return round(super().to_internal_value(data), 3)


class QuotaInput(StrictSerializer):
    """What is left out or null has no limit."""

    workspaces = Whole(required=False, allow_null=True, max_value=_COUNT)
    cpus = Amount(required=False, allow_null=True, min_value=0, max_value=_MOST_CPUS)
    memory_bytes = Whole(required=False, allow_null=True)
    gpus = Whole(required=False, allow_null=True, max_value=_COUNT)
    disk_bytes = Whole(required=False, allow_null=True)


class QuotaLimits(serializers.Serializer[Any]):
    workspaces = serializers.IntegerField(allow_null=True)
    cpus = serializers.FloatField(allow_null=True)
    memory_bytes = serializers.IntegerField(allow_null=True)
    gpus = serializers.IntegerField(allow_null=True)
    disk_bytes = serializers.IntegerField(allow_null=True)


class QuotaUsage(serializers.Serializer[Any]):
    """Workspaces and images that are owned; the rest of workspaces that run or shall run."""

    workspaces = serializers.IntegerField()
    cpus = serializers.FloatField()
    memory_bytes = serializers.IntegerField()
    gpus = serializers.IntegerField()
    disk_bytes = serializers.IntegerField()


class QuotaOutput(serializers.Serializer[Any]):
    limits = QuotaLimits()
    used = QuotaUsage(help_text="By this user, or by all members of the group together.")


class OwnQuotaOutput(QuotaOutput):
    subject = serializers.ChoiceField(choices=["user", "group"])
    name = serializers.CharField()


class OwnQuotaView(APIView):
    @extend_schema(responses=OwnQuotaOutput(many=True))
    def get(self, request: Request) -> Response:
        """Every quota that counts for the caller: the own one and those of the groups."""
        return Response(OwnQuotaOutput(quotas_told(request.user.pk), many=True).data)


class _SubjectQuotaView(APIView):
    permission_classes = (SignedInWithScope, AdminOnly)
    model: ClassVar[type[Model]]

    @extend_schema(responses=QuotaOutput)
    def get(self, request: Request, pk: str) -> Response:
        return self._told(self._subject(pk))

    @extend_schema(request=QuotaInput, responses=QuotaOutput)
    def put(self, request: Request, pk: str) -> Response:
        """Replace all limits. Nothing that runs is stopped by a lower one."""
        subject = self._subject(pk)
        given = QuotaInput(data=request.data)
        given.is_valid(raise_exception=True)
        quota_replace(actor=request.user, subject=subject, limits=given.validated_data)
        return self._told(subject)

    def _subject(self, pk: str) -> Any:
        try:
            found = self.model._default_manager.filter(pk=pk).first()
        except (ValueError, ValidationError, OverflowError):
            found = None
        if found is None:
            raise NotFound(f"There is no such {self.model._meta.model_name}.")
        return found

    def _told(self, subject: Any) -> Response:
        who: dict[str, Any] = {"user" if self.model is User else "group": subject}
        row = Quota(**who)
        told = {"limits": quota_of(subject), "used": usage_of(row)}
        return Response(QuotaOutput(told).data)


class UserQuotaView(_SubjectQuotaView):
    model = User


class GroupQuotaView(_SubjectQuotaView):
    model = Group

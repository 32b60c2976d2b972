"""Endpoints of users and groups, for administrators."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from django.contrib.auth.models import Group
from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema
from rest_framework.response import Response

from trailer.accounts.administration import (
    group_create,
    group_delete,
    group_update,
    user_create,
    user_delete,
    user_update,
)
from trailer.accounts.api import serializers
from trailer.accounts.models import User
from trailer.api.filters import FlagFilter, NameFilter
from trailer.api.permissions import AdminOnly, SignedInWithScope
from trailer.api.views import ResourceViewSet

if TYPE_CHECKING:
    from rest_framework.request import Request


class UserFilter(filters.FilterSet):  # type: ignore[misc]
    username = filters.CharFilter()
    is_active = FlagFilter()
    is_admin = FlagFilter("is_superuser")


class UserViewSet(ResourceViewSet[User]):
    """For admins."""

    queryset = User.objects.prefetch_related("groups")
    serializer_class = serializers.UserOutput
    permission_classes = (SignedInWithScope, AdminOnly)
    filterset_class = UserFilter
    search_fields: ClassVar = ["username", "email"]
    ordering_fields: ClassVar = ["username", "email", "date_joined", "last_login"]
    ordering: ClassVar = ["username"]

    @extend_schema(request=serializers.UserInput, responses={201: serializers.UserOutput})
    def create(self, request: Request) -> Response:
        user = user_create(actor=request.user, **self.given(serializers.UserInput))
        return self.answer(user.pk, 201)

    @extend_schema(request=serializers.UserInput, responses=serializers.UserOutput)
    def partial_update(self, request: Request, pk: str) -> Response:
        data = self.given(serializers.UserInput)
        user = user_update(actor=request.user, user=self.get_object(), **data)
        return self.answer(user.pk)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        user_delete(actor=request.user, user=self.get_object())
        return Response(status=204)


class GroupViewSet(ResourceViewSet[Group]):
    """For admins. What is granted to a group counts for everybody in it."""

    queryset = Group.objects.prefetch_related("user_set")
    serializer_class = serializers.GroupOutput
    permission_classes = (SignedInWithScope, AdminOnly)
    filterset_class = NameFilter
    search_fields: ClassVar = ["name"]
    ordering_fields: ClassVar = ["name"]
    ordering: ClassVar = ["name"]

    @extend_schema(request=serializers.GroupInput, responses={201: serializers.GroupOutput})
    def create(self, request: Request) -> Response:
        group = group_create(actor=request.user, **self.given(serializers.GroupInput))
        return Response(self.get_serializer(group).data, status=201)

    @extend_schema(request=serializers.GroupInput, responses=serializers.GroupOutput)
    def partial_update(self, request: Request, pk: str) -> Response:
        data = self.given(serializers.GroupInput)
        group = group_update(actor=request.user, group=self.get_object(), **data)
        return Response(self.get_serializer(group).data)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        group_delete(actor=request.user, group=self.get_object())
        return Response(status=204)

"""Endpoints of the second factor: one's own, and its removal by an administrator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.views import APIView

from trailer import policy
from trailer.accounts.login import check_present_password
from trailer.accounts.models import User
from trailer.accounts.second_factor import (
    codes_left,
    factor_begin,
    factor_confirm,
    factor_remove,
    is_on,
    recovery_codes_renew,
)
from trailer.api.fields import Text
from trailer.api.permissions import AdminOnly, SignedInWithScope
from trailer.api.serializers import NoInput, StrictSerializer
from trailer.errors import NotFound

if TYPE_CHECKING:
    from rest_framework.request import Request


class PresentPasswordInput(StrictSerializer):
    current_password = Text(max_length=4096, write_only=True)


class CodeInput(StrictSerializer):
    code = Text(max_length=40, write_only=True)


class SecondFactorOutput(serializers.Serializer[Any]):
    enabled = serializers.BooleanField()
    recovery_codes_left = serializers.IntegerField()


class SecondFactorEnrolment(serializers.Serializer[Any]):
    """Shown once."""

    secret = serializers.CharField()
    uri = serializers.CharField()
    picture = serializers.CharField(help_text="The address as an image, a data URI.")


class RecoveryCodesOutput(serializers.Serializer[Any]):
    """Shown once; each works once."""

    recovery_codes = serializers.ListField(child=serializers.CharField())


class SecondFactorView(APIView):
    @extend_schema(responses=SecondFactorOutput)
    def get(self, request: Request) -> Response:
        actor: Any = request.user
        told = {"enabled": is_on(actor), "recovery_codes_left": codes_left(actor)}
        return Response(SecondFactorOutput(told).data)

    @extend_schema(request=PresentPasswordInput, responses={201: SecondFactorEnrolment})
    def post(self, request: Request) -> Response:
        """Begin to set one up. It counts once a code of the app was confirmed."""
        _check_password(request)
        return Response(SecondFactorEnrolment(factor_begin(actor=request.user)).data, status=201)


class SecondFactorConfirmView(APIView):
    @extend_schema(request=CodeInput, responses=RecoveryCodesOutput)
    def post(self, request: Request) -> Response:
        given = CodeInput(data=request.data)
        given.is_valid(raise_exception=True)
        codes = factor_confirm(actor=request.user, code=given.validated_data["code"])
        return Response(RecoveryCodesOutput({"recovery_codes": codes}).data)


class SecondFactorRemoveView(APIView):
    @extend_schema(request=PresentPasswordInput, responses={204: None})
    def post(self, request: Request) -> Response:
        _check_password(request)
        actor: Any = request.user
        factor_remove(actor=actor, user=actor)
        return Response(status=204)


class RecoveryCodesView(APIView):
    @extend_schema(request=PresentPasswordInput, responses=RecoveryCodesOutput)
    def post(self, request: Request) -> Response:
        """New recovery codes; the old ones stop working."""
        _check_password(request)
        codes = recovery_codes_renew(actor=request.user)
        return Response(RecoveryCodesOutput({"recovery_codes": codes}).data)


class UserSecondFactorRemoveView(APIView):
    """For somebody who lost both phone and recovery codes."""

    permission_classes = (SignedInWithScope, AdminOnly)

    @extend_schema(request=NoInput, responses={204: None})
    def post(self, request: Request, pk: str) -> Response:
        NoInput(data=request.data).is_valid(raise_exception=True)
        try:
            user = User.objects.filter(pk=pk).first()
        except (ValueError, ValidationError):
            user = None
        if user is None:
            raise NotFound("There is no such user.")
        policy.require(request.user, "user.modify", user)
        factor_remove(actor=request.user, user=user)
        return Response(status=204)


def _check_password(request: Request) -> None:
    given = PresentPasswordInput(data=request.data)
    given.is_valid(raise_exception=True)
    actor: Any = request.user
    check_present_password(request._request, actor, given.validated_data["current_password"])

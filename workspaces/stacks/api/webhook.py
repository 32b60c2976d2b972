"""The webhook of a stack: signed by the git server, answered with a link to the sync."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.views import APIView

from trailer.api.views import JsonWhateverIsAccepted
from workspaces.stacks.services.webhook import webhook_receive

if TYPE_CHECKING:
    from uuid import UUID

    from rest_framework.request import Request


SIGNATURE: Final = OpenApiParameter(
    "X-Hub-Signature-256",
    str,
    OpenApiParameter.HEADER,
    description="sha256= and the HMAC of the raw body under the stack's webhook_secret.",
)


class WebhookOutput(serializers.Serializer[Any]):
    status = serializers.ChoiceField(choices=["accepted", "ignored"])
    sync = serializers.UUIDField(required=False, help_text="The sync that was asked for.")
    url = serializers.URLField(required=False, help_text="Where that sync is read.")
    reason = serializers.CharField(required=False, help_text="Why it was ignored.")


class StackWebhookView(APIView):
    """No login: the signature over the raw body says who sent it."""

    authentication_classes = ()
    permission_classes = ()
    content_negotiation_class = JsonWhateverIsAccepted

    @extend_schema(
        operation_id="stacks_webhook",
        tags=["stacks"],
        auth=[],
        parameters=[SIGNATURE],
        request=OpenApiTypes.OBJECT,
        responses={202: WebhookOutput},
    )
    def post(self, request: Request, pk: UUID) -> Response:
        # The raw bytes: parsing and writing them again would not give the same signature.
        sync, reason = webhook_receive(pk, request.headers, request._request.body)
        said = {"status": "ignored", "reason": reason} if reason else {"status": "accepted"}
        if sync is None:
            return Response(said, status=202)
        link = f"{settings.TRAILER_PUBLIC_URL}/api/v1/syncs/{sync.pk}/"
        return Response(
            {**said, "sync": str(sync.pk), "url": link}, status=202, headers={"Location": link}
        )


@extend_schema_view(post=extend_schema(exclude=True))
class StackWebhookBelowApiView(StackWebhookView):
    """The same below /api/v1/, where everything else of the API lies; written down once."""

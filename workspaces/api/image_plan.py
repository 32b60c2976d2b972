"""What making an image again would take from workspaces; here, because images know none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drf_spectacular.utils import extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from images.models import Image
from trailer import policy
from trailer.api.permissions import SignedInWithScope
from trailer.api.serializers import NoInput
from trailer.errors import NotFound
from workspaces.api.serializers import ReplaceLossesSerializer
from workspaces.services.loss import image_losses, replace_body

if TYPE_CHECKING:
    from uuid import UUID

    from rest_framework.request import Request


class ImageBuildPlanView(APIView):
    permission_classes = (SignedInWithScope,)

    @extend_schema(request=NoInput, responses={200: ReplaceLossesSerializer})
    def post(self, request: Request, pk: UUID) -> Response:
        """Workspaces that a new build or pull would take files from; saves nothing."""
        NoInput(data=request.data).is_valid(raise_exception=True)
        image = Image.objects.visible_to(request.user).filter(pk=pk).first()
        if image is None:
            raise NotFound("There is no such image, or you may not see it.")
        policy.require(request.user, "image.modify", image)
        losses = image_losses(request.user, image)
        return Response(ReplaceLossesSerializer(replace_body(losses)).data)

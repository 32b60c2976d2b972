"""The API browser: Swagger UI under the same content policy as our own pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularSwaggerView

if TYPE_CHECKING:
    from rest_framework.request import Request
    from rest_framework.response import Response


class DocsView(SpectacularSwaggerView):
    """With a template and a script file of our own. The kit's split view would serve the CSRF
    token inside a script, which a page of another origin may load and run."""

    template_name = "api_docs.html"

    @extend_schema(exclude=True)
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        answer: Response = super().get(request, *args, **kwargs)  # type: ignore[no-untyped-call]
        # Set by the kit for sign-ins by OAuth in another window, which we have none of.
        del answer.headers["Cross-Origin-Opener-Policy"]
        return answer

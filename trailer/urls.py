"""Where everything is mounted."""

from django.conf import settings
from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView
from drf_spectacular.views import SpectacularAPIView

from trailer import health
from trailer.api.docs import DocsView
from trailer.pages.prometheus import PrometheusView

urlpatterns = [
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    # What a browser asks for by itself where a page names no icon.
    path("favicon.ico", RedirectView.as_view(url=settings.FAVICON), name="favicon"),
    path("metrics", PrometheusView.as_view(), name="metrics"),
    path("admin/", admin.site.urls),
    path("api/agent/v1/", include("workspaces.control.urls")),
    path("api/v1/", include("trailer.accounts.api.urls")),
    path("api/v1/", include("trailer.audit.api.urls")),
    path("api/v1/", include("hosts.api.urls")),
    path("api/v1/", include("images.api.urls")),
    path("api/v1/", include("workspaces.api.urls")),
    path("api/v1/", include("workspaces.stacks.api.urls")),
    path("webhooks/", include("workspaces.stacks.api.webhook_urls")),
    path("api/schema/", SpectacularAPIView.as_view(), name="schema"),
    path("api/docs/", DocsView.as_view(url_name="schema"), name="docs"),
    path("", include("workspaces.urls.routes")),
    path("", include("trailer.pages.urls")),
]

handler400 = "trailer.pages.errors.bad_request"
handler403 = "trailer.pages.errors.not_allowed"
handler404 = "trailer.pages.errors.not_found"
handler500 = "trailer.pages.errors.failed"

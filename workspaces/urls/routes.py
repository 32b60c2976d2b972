"""Addresses of the sign-in side of workspaces' URLs, on the server's own name."""

from django.urls import path

from workspaces.urls.forward_auth import ForwardAuthView
from workspaces.urls.views import EnterView

urlpatterns = [
    path("urls/enter/", EnterView.as_view(), name="url-enter"),
    path(
        "forward-auth/<uuid:workspace_id>/<str:host>/",
        ForwardAuthView.as_view(),
        name="forward-auth",
    ),
]

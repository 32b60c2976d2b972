"""Addresses of the WebSockets."""

from typing import Any

from django.urls import path, re_path

from hosts.consumers import AgentConsumer
from images.consumers import BuildLogConsumer
from trailer.sockets import NothingHere
from workspaces.consumers import LiveConsumer
from workspaces.sessions.consumers import AttachConsumer, ExecConsumer, LogsConsumer

# Django's stubs know only views that answer HTTP; Channels reuses its URL patterns for sockets.
_SOCKETS: dict[str, Any] = {
    "ws/live/": LiveConsumer.as_asgi(),
    "ws/agent/": AgentConsumer.as_asgi(),
    "ws/builds/<uuid:build_id>/log/": BuildLogConsumer.as_asgi(),
    "ws/workspaces/<uuid:workspace_id>/logs/": LogsConsumer.as_asgi(),
    "ws/workspaces/<uuid:workspace_id>/exec/": ExecConsumer.as_asgi(),
    "ws/workspaces/<uuid:workspace_id>/attach/": AttachConsumer.as_asgi(),
}

websocket_urlpatterns: list[Any] = [path(route, app) for route, app in _SOCKETS.items()]

_nothing_here: Any = NothingHere.as_asgi()
elsewhere: Any = re_path("", _nothing_here)

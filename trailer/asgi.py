"""ASGI entry point: pages, REST and WebSockets in one process."""

import os

from channels.routing import ProtocolTypeRouter, URLRouter
from channels.sessions import SessionMiddlewareStack
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "trailer.settings")
_http = get_asgi_application()

# The app registry must be ready before consumers import models.
from trailer.routing import websocket_urlpatterns  # noqa: E402

application = ProtocolTypeRouter(
    {
        "http": _http,
        # Consumers check origin and user themselves: a token needs neither cookie nor origin.
        "websocket": SessionMiddlewareStack(URLRouter(websocket_urlpatterns)),
    }
)

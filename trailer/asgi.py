"""ASGI entry point: workspaces' URLs, pages, REST and WebSockets in one process."""

import os

import django
from channels.routing import ProtocolTypeRouter, URLRouter
from channels.sessions import SessionMiddlewareStack

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "trailer.settings")
django.setup(set_prefix=False)

# The app registry must be ready before consumers import models.
from trailer.routing import elsewhere, websocket_urlpatterns  # noqa: E402
from trailer.threads import ThreadedHandler  # noqa: E402
from workspaces.urls.by_host import ByHost  # noqa: E402
from workspaces.urls.relay import Relay  # noqa: E402

application = ByHost(
    relay=Relay(),
    own=ProtocolTypeRouter(
        {
            "http": ThreadedHandler(),
            # Consumers check origin and user themselves: a token needs neither cookie nor origin.
            "websocket": SessionMiddlewareStack(URLRouter([*websocket_urlpatterns, elsewhere])),
        }
    ),
)

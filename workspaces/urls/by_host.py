"""The first fork of every request: a workspace's host name, or the server itself."""

from __future__ import annotations

from typing import Any

from workspaces.urls.headers import header
from workspaces.urls.place import is_relayed


class ByHost:
    """An ASGI application of two. `streams` tells the web server whose bodies it must not keep."""

    def __init__(self, *, relay: Any, own: Any) -> None:
        self._relay = relay
        self._own = own

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        asked = header(scope.get("headers", ()), b"host")
        application = self._relay if self.streams(asked) else self._own
        await application(scope, receive, send)

    @staticmethod
    def streams(host_header: str) -> bool:
        return is_relayed(host_header)

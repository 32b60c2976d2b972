"""A workspace that serves HTTP and WebSockets, and a visitor with a browser's manners."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import requests
from requests.adapters import HTTPAdapter

from tests.ground.server import PASSWORD, USERNAME
from tests.ground.url_image import APP, APP_PORT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.e2e.scenario import User
    from tests.ground.server import RunningTrailer


def serving(user: User, name: str, *urls: Mapping[str, Any], **fields: Any) -> Any:
    """A running workspace with the test application, whose image the engine has."""
    found = user.get("/images/?name=web")["results"]
    image = found[0] if found else user.pulled_image("web", APP)
    given = {"port": APP_PORT, "domain": "localhost", "auth": "public"}
    return user.running(
        name,
        image=image["id"],
        command=fields.pop("command", []),
        urls=[{**given, **url} for url in urls],
        **fields,
    )


class Visitor:
    """Names under localhost lead to this machine, as in browsers."""

    def __init__(self, trailer: RunningTrailer) -> None:
        self.trailer = trailer
        self.session = requests.Session()
        self.session.mount("http://", _Loopback())

    def address(self, subdomain: str, path: str = "/") -> str:
        return f"http://{subdomain}.localhost:{self.trailer.port}{path}"

    def get(self, subdomain: str, path: str = "/", **options: Any) -> requests.Response:
        return self.session.get(self.address(subdomain, path), timeout=60, **options)

    def sign_in(self, username: str = USERNAME, password: str = PASSWORD) -> requests.Response:
        page = f"{self.trailer.url}/login/"
        self.session.get(page, timeout=30)
        return self.submit(page, username, password)

    def submit(self, page: str, username: str, password: str) -> requests.Response:
        token = self.session.cookies.get("csrftoken", path="/")
        return self.session.post(
            page,
            data={"username": username, "password": password, "csrfmiddlewaretoken": token},
            headers={"Referer": page, "Accept": "text/html"},
            timeout=30,
        )

    def navigate(self, subdomain: str, path: str = "/") -> requests.Response:
        return self.get(subdomain, path, headers={"Accept": "text/html"})


class _Loopback(HTTPAdapter):
    """Keeps the name in the Host header and connects to one place."""

    place = "127.0.0.1"

    def send(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        # On a copy: a Host header that stays would name the wrong jar for the next cookies.
        named = request.copy()
        named.headers["Host"] = request.url.split("/")[2]
        response = super().send(named, *args, **kwargs)
        response.request = request
        return response

    def build_connection_pool_key_attributes(self, *args: Any, **kwargs: Any) -> Any:
        host, pool = super().build_connection_pool_key_attributes(*args, **kwargs)
        if not host["host"][0].isdigit():
            host["host"] = self.place
        return host, pool

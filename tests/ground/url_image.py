"""The image of the small web application, made of this machine's own Python."""

from pathlib import Path

import docker
import h11

from tests.ground import url_app
from tests.ground.agent_image import build, ensure_base

APP = "trailer-test/web:2"
APP_PORT = 8080
_DOCKERFILE = f"""
ARG BASE
FROM ${{BASE}}
COPY h11 /usr/local/lib/packages/h11
COPY url_app.py /url_app.py
CMD ["python3", "/url_app.py", "{APP_PORT}"]
LABEL traefik.enable=true traefik.http.routers.own.rule=PathPrefix(`/`)
"""


def ensure_app(client: docker.DockerClient) -> str:
    """Build it unless the engine has it; its reference. Its labels ask for a route of its own."""
    if not client.api.images(APP):
        ensure_base(client)
        files = {"url_app.py": Path(url_app.__file__).read_bytes()}
        for path in Path(h11.__file__).parent.glob("*.py"):
            files[f"h11/{path.name}"] = path.read_bytes()
        build(client, APP, _DOCKERFILE, files)
    return APP

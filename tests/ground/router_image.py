"""Traefik's image, made of the program that PyPI carries: nothing is pulled from outside."""

import io
import sys
import tarfile
from pathlib import Path

import docker

ROUTER = "trailer-test/router:1"


def ensure_router(client: docker.DockerClient) -> str:
    """Import it unless the engine has it; its reference."""
    if not client.api.images(ROUTER):
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as files:
            files.add(Path(sys.executable).parent / "traefik", "traefik")
            for name in ("etc", "etc/trailer", "tmp"):
                folder = tarfile.TarInfo(name)
                folder.type, folder.mode = tarfile.DIRTYPE, 0o755
                files.addfile(folder)
        repository, _, tag = ROUTER.rpartition(":")
        client.api.import_image_from_data(
            archive.getvalue(), repository=repository, tag=tag, changes=['ENTRYPOINT ["/traefik"]']
        )
    return ROUTER

"""Valkey's image, made of this machine's Redis, which speaks the same: nothing is pulled."""

import io
import shutil
import tarfile
from pathlib import Path

import docker

from tests.ground.agent_image import libraries_of
from tests.ground.images import BUSYBOX, root_filesystem

# Under the name that the catalogue of needs has, so that the engine finds it there.
VALKEY = "valkey/valkey:8"
# Runs, and answers nobody: a server that never becomes ready.
DEAF_VALKEY = "trailer-test/deaf-valkey:1"
_DEAF = "#!/bin/sh\\ntrap 'exit 0' TERM\\nwhile :; do sleep 3600 & wait; done\\n"


def ensure_valkey(client: docker.DockerClient) -> None:
    """Import both unless the engine has them."""
    if not client.api.images(VALKEY):
        repository, _, tag = VALKEY.rpartition(":")
        client.api.import_image_from_data(
            _archive(), repository=repository, tag=tag, changes=["ENV PATH=/bin"]
        )
    if not client.api.images(DEAF_VALKEY):
        path = "/bin/docker-entrypoint.sh"
        writes = f'printf "{_DEAF}" > {path}; chmod 755 {path}'
        made = client.containers.run(BUSYBOX, ["sh", "-c", writes], detach=True)
        made.wait()
        made.commit(*DEAF_VALKEY.split(":"))
        made.remove()


def _archive() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        with tarfile.open(fileobj=io.BytesIO(root_filesystem())) as small:
            for member in small:
                archive.addfile(member, small.extractfile(member) if member.isfile() else None)
        programs = []
        for name in ("server", "cli"):
            found = shutil.which(f"redis-{name}")
            assert found is not None, f"redis-{name} is not installed"
            programs.append(Path(found).resolve())
            archive.add(programs[-1], f"bin/valkey-{name}")
        for library in sorted(libraries_of(programs)):
            archive.add(library.resolve(), str(library).lstrip("/"))
    return buffer.getvalue()

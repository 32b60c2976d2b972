"""Images made on the spot from the machine's own busybox: nothing is pulled from outside."""

import io
import json
import subprocess
import tarfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import docker

BUSYBOX = "trailer-test/busybox:1"
HTTPD = "trailer-test/httpd:1"
HTTPD_PAGE = "hello from trailer-test\n"
HTTPD_HEALTH_COMMAND = ["wget", "-q", "-O", "-", "http://127.0.0.1/"]
# Programs as process 1 ignore SIGTERM unless they handle it, and then stopping takes 10 s.
RUN_UNTIL_STOPPED = ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done"]
HTTPD_COMMAND = ["sh", "-c", "trap 'exit 0' TERM; httpd -f -p 80 -h /www & wait"]


def ensure_images(client: docker.DockerClient) -> None:
    """Import the test images into the engine unless it has them."""
    _ensure(client, BUSYBOX, ["/bin/sh"], [])
    _ensure(client, HTTPD, HTTPD_COMMAND, ["EXPOSE 80"])


def push(
    client: docker.DockerClient,
    image: str,
    target: str,
    auth: Mapping[str, str] | None = None,
) -> str:
    """Tag `image` as `target` (address/name:tag), push it, and return the digest it got.

    Errors come as lines of the stream; this raises them.
    """
    repository, _, tag = target.rpartition(":")
    client.images.get(image).tag(repository, tag)
    digest = ""
    for line in client.api.push(
        repository, tag=tag, stream=True, decode=True, auth_config=dict(auth) if auth else None
    ):
        if "error" in line:
            raise docker.errors.APIError(str(line["error"]))
        digest = line.get("aux", {}).get("Digest", digest)
    return digest


def _ensure(
    client: docker.DockerClient, image: str, command: list[str], changes: list[str]
) -> None:
    if client.api.images(image):
        return
    repository, _, tag = image.rpartition(":")
    client.api.import_image_from_data(
        root_filesystem(),
        repository=repository,
        tag=tag,
        changes=["ENV PATH=/bin", f"CMD {json.dumps(command)}", *changes],
    )


@cache
def root_filesystem() -> bytes:
    """Return the tar archive of a minimal system: busybox under all its names, and one page."""
    busybox = Path("/bin/busybox")
    listed = subprocess.run(
        [busybox, "--list"], capture_output=True, text=True, check=True
    ).stdout.split()
    files = {
        "etc/passwd": "root:x:0:0:root:/root:/bin/sh\n",
        "etc/group": "root:x:0:\n",
        "www/index.html": HTTPD_PAGE,
    }
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name in ("bin", "etc", "tmp", "root", "proc", "sys", "dev", "www"):
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
            archive.addfile(folder)
        archive.add(busybox, "bin/busybox")
        for applet in listed:
            if applet != "busybox":
                link = tarfile.TarInfo(f"bin/{applet}")
                link.type, link.linkname = tarfile.SYMTYPE, "busybox"
                archive.addfile(link)
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(text), 0o644
            archive.addfile(entry, io.BytesIO(text.encode()))
    return buffer.getvalue()

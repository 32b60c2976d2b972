"""The images that deploy/compose.yaml names, made of this machine's own programs."""

import io
import shutil
import sys
import tarfile
from collections.abc import Iterable
from pathlib import Path

import docker

from agent.version import VERSION
from tests.ground import agent_image
from tests.ground.agent_image import (
    agent_files,
    build,
    ensure_agent_image,
    ensure_base,
    libraries_of,
)
from tests.ground.images import root_filesystem

ROOT = Path(__file__).resolve().parents[2]
BASE = "trailer-test/server-base:1"
SERVER = "trailer.invalid/server:latest"
AGENT = f"trailer.invalid/agent:{VERSION}"
POSTGRES = "postgres:17"
# As in the packages that the server's Dockerfile names; git reads folders by the second one.
_PROGRAMS = ("git", "git-upload-pack", "prlimit", "psql", "pg_dump", "pg_restore")
_POSTGRES = """#!/bin/sh
export PGDATA=${PGDATA:-/var/lib/postgresql/data}
mkdir -p "$PGDATA" /tmp && chown postgres:postgres "$PGDATA" && chmod 700 "$PGDATA"
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  echo "$POSTGRES_PASSWORD" > /tmp/word && chown postgres /tmp/word
  su postgres -c "initdb -U $POSTGRES_USER --pwfile=/tmp/word -A scram-sha-256 -E UTF8 --locale=C"
  rm /tmp/word
  echo "host all all all scram-sha-256" >> "$PGDATA/pg_hba.conf"
  sed -i 's/^local .*/local all all trust/' "$PGDATA/pg_hba.conf"
  echo "CREATE DATABASE $POSTGRES_DB" | su postgres -c "postgres --single -D $PGDATA postgres"
fi
exec su postgres -c "exec postgres -D $PGDATA -k /tmp -c listen_addresses='*'"
"""


def ensure_compose_images(client: docker.DockerClient) -> None:
    """Make those that the engine lacks; a name and tag as in the file, contents as here."""
    _ensure(client, "redis:7", [_found("redis-server"), _found("redis-cli")], {}, [])
    caddy = Path(sys.executable).parent / "caddy"
    run = 'CMD ["caddy", "run", "--config", "/etc/caddy/Caddyfile"]'
    _ensure(client, "caddy:2", [caddy], {}, [run, "ENV XDG_DATA_HOME=/data XDG_CONFIG_HOME=/tmp"])
    ensure_postgres(client)
    ensure_agent(client)
    if not client.api.images(SERVER):
        # git finds its helper for HTTP beside itself too.
        helper = Path("/usr/lib/git-core/git-remote-http")
        programs = (
            *(_found(name) for name in _PROGRAMS),
            helper,
        )
        ensure_base(client, BASE, ROOT / "requirements.txt", programs)
        dockerfile = (ROOT / "deploy" / "server.Dockerfile").read_text()
        ensure_base(client)
        bases = {"BASE": BASE, "AGENT_BASE": agent_image.BASE, "PROGRAMS": ""}
        build(client, SERVER, dockerfile, _server_files(), bases)


def ensure_agent(client: docker.DockerClient) -> None:
    """The agent under the name that the Compose file has."""
    if not client.api.images(AGENT):
        client.images.get(ensure_agent_image(client)).tag(*AGENT.split(":"))


def _server_files() -> dict[str, bytes]:
    """What the server's Dockerfile copies."""
    names = ("requirements.txt", "manage.py", "deploy/agent_archive.py")
    files = agent_files() | {name: (ROOT / name).read_bytes() for name in names}
    for folder in "agent", "trailer", "hosts", "images", "workspaces", "templates", "static":
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                files[str(path.relative_to(ROOT))] = path.read_bytes()
    return files


def ensure_postgres(client: docker.DockerClient) -> None:
    """PostgreSQL under the name that the Compose file and the catalogue of needs have."""
    home = sorted(Path("/usr/lib/postgresql").glob("*"))[-1]
    folders = (home, Path("/usr/share/postgresql") / home.name, Path("/usr/share/zoneinfo"))
    programs = [path for path in (home / "bin").iterdir() if path.is_file()]
    programs += (home / "lib").glob("*.so")
    files = {"entry.sh": _POSTGRES, "etc/passwd": _USERS, "etc/group": _GROUPS}
    changes = [f"ENV PATH={home}/bin:/bin", 'ENTRYPOINT ["/bin/sh", "/entry.sh"]']
    _ensure(client, POSTGRES, programs, files, changes, folders)


_USERS = "root:x:0:0:root:/root:/bin/sh\npostgres:x:999:999::/tmp:/bin/sh\n"
_GROUPS = "root:x:0:\npostgres:x:999:\n"


def _found(name: str) -> Path:
    where = shutil.which(name)
    assert where is not None, f"{name} is not installed"
    # Debian's wrapper in front of PostgreSQL's clients needs Perl.
    served = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return served[-1] if served else Path(where)


def _ensure(
    client: docker.DockerClient,
    image: str,
    programs: Iterable[Path],
    files: dict[str, str],
    changes: list[str],
    folders: Iterable[Path] = (),
) -> None:
    if client.api.images(image):
        return
    buffer, programs = io.BytesIO(), list(programs)
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        with tarfile.open(fileobj=io.BytesIO(root_filesystem())) as small:
            for member in small:
                if member.name not in files:
                    content = small.extractfile(member) if member.isfile() else None
                    archive.addfile(member, content)
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(text), 0o755
            archive.addfile(entry, io.BytesIO(text.encode()))
        for folder in folders:
            archive.add(folder, str(folder).lstrip("/"))
        for program in [] if folders else programs:
            archive.add(program.resolve(), f"bin/{program.name}")
        for library in sorted(libraries_of(programs)):
            archive.add(library.resolve(), str(library).lstrip("/"))
    repository, _, tag = image.rpartition(":")
    client.api.import_image_from_data(
        buffer.getvalue(), repository=repository, tag=tag, changes=["ENV PATH=/bin", *changes]
    )

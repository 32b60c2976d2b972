"""PostgreSQL's image, made of this machine's server: nothing is pulled."""

import io
import shutil
import tarfile
from pathlib import Path

import docker

from tests.ground.agent_image import libraries_of
from tests.ground.images import root_filesystem

POSTGRES = "trailer-test/postgres:1"
FOLDER = "/data"
# Where a server notes that another one had the same folder open when it began.
OVERLAPS = f"{FOLDER}/overlaps"
_USER = 70
_MODULES = ("dict_snowball.so", "plpgsql.so")
# The lock is held until the last process of the container has ended, and belongs to the folder:
# who does not get it began while another container still ran on it.
_START = f"""#!/bin/sh
exec 9>{FOLDER}/lock
flock -n 9 || hostname >> {OVERLAPS}
if [ ! -s {FOLDER}/pg/PG_VERSION ]; then
    rm -rf {FOLDER}/new
    initdb -D {FOLDER}/new -A trust -U postgres -E UTF8 --locale=C --no-sync >/dev/null || exit 1
    echo 'host all all all trust' >> {FOLDER}/new/pg_hba.conf
    mv {FOLDER}/new {FOLDER}/pg
fi
# At once and in order, without waiting for clients: an imported image can name no other signal.
trap 'kill -INT $server' TERM
postgres -D {FOLDER}/pg -c listen_addresses='*' -c unix_socket_directories=/tmp \\
    -c fsync=off -c shared_buffers=16MB -c max_connections=20 &
server=$!
while kill -0 $server 2>/dev/null; do wait $server; code=$?; done
exit $code
"""


def ensure_postgres(client: docker.DockerClient) -> None:
    """Import it unless the engine has it."""
    if client.api.images(POSTGRES):
        return
    repository, _, tag = POSTGRES.rpartition(":")
    client.api.import_image_from_data(
        _archive(),
        repository=repository,
        tag=tag,
        changes=[
            f"ENV PATH={_programs()}:/bin",
            f"USER {_USER}",
            'CMD ["/bin/start"]',
        ],
    )


def _programs() -> Path:
    return sorted(Path("/usr/lib/postgresql").glob("*/bin"))[-1]


def _archive() -> bytes:
    buffer, programs = io.BytesIO(), _programs()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        _base(archive)
        flock = shutil.which("flock")
        assert flock is not None, "flock is not installed"
        files = [programs / name for name in ("postgres", "initdb", "pg_isready", "psql")]
        files += [programs.parent / "lib" / name for name in _MODULES]
        for file in files:
            archive.add(file.resolve(), str(file).lstrip("/"))
        archive.add(Path(flock).resolve(), "bin/flock")
        version = programs.parent.name
        for shared in (f"/usr/share/postgresql/{version}", "/usr/share/zoneinfo/Etc"):
            archive.add(shared, shared.lstrip("/"), filter=_without_manuals)
        for library in sorted(libraries_of([*files, Path(flock)])):
            archive.add(library.resolve(), str(library).lstrip("/"))
    return buffer.getvalue()


def _base(archive: tarfile.TarFile) -> None:
    """Busybox, without its own flock if it has one, and who the server is."""
    texts = {"etc/passwd": f"postgres:x:{_USER}:{_USER}::/:/bin/sh\n", "bin/start": _START}
    with tarfile.open(fileobj=io.BytesIO(root_filesystem())) as small:
        for member in small:
            if member.name not in {*texts, "bin/flock"}:
                archive.addfile(member, small.extractfile(member) if member.isfile() else None)
    for name, text in texts.items():
        entry = tarfile.TarInfo(name)
        entry.size, entry.mode = len(text), 0o755
        archive.addfile(entry, io.BytesIO(text.encode()))
    # A new volume takes over who owns the folder that it is mounted at.
    folder = tarfile.TarInfo(FOLDER.lstrip("/"))
    folder.type, folder.mode, folder.uid, folder.gid = tarfile.DIRTYPE, 0o700, _USER, _USER
    archive.addfile(folder)


def _without_manuals(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if "/man/" in f"{member.name}/" else member

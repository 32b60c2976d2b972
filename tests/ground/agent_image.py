"""The agent's image, built from its own Dockerfile on a base made of this machine's Python.

The base holds the interpreter, the libraries it needs, busybox, and the agent's packages as they
are installed here: pip finds every pinned version already there and asks nobody. It is made once
per machine and kept in the temporary folder.
"""

import hashlib
import io
import re
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import docker

from tests.ground.images import root_filesystem

ROOT = Path(__file__).resolve().parents[2]
REQUIREMENTS = ROOT / "deploy" / "agent-requirements.txt"
BASE = "trailer-test/python:1"
AGENT = "trailer-test/agent:1"
_UNUSED = {"test", "tests", "idlelib", "tkinter", "turtledemo", "site-packages", "ensurepip"}
_UNUSED |= {"lib2to3", "pydoc_data", "dist-packages"}


def ensure_agent_image(client: docker.DockerClient) -> str:
    """Build the agent's image unless the engine has it; its reference."""
    if not client.api.images(AGENT):
        ensure_base(client)
        build(client, AGENT, (ROOT / "deploy" / "agent.Dockerfile").read_text(), agent_files())
    return AGENT


def agent_files() -> dict[str, bytes]:
    """What the agent's Dockerfile copies."""
    files = {"deploy/agent-requirements.txt": REQUIREMENTS.read_bytes()}
    for path in sorted((ROOT / "agent").rglob("*.py")):
        files[str(path.relative_to(ROOT))] = path.read_bytes()
    return files


def build(
    client: docker.DockerClient,
    tag: str,
    dockerfile: str,
    files: Mapping[str, bytes],
    buildargs: Mapping[str, str] | None = None,
) -> None:
    """Build an image; what went wrong is raised with the output."""
    context = io.BytesIO()
    with tarfile.open(fileobj=context, mode="w") as archive:
        for name, body in {**files, "Dockerfile": dockerfile.encode()}.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(body), 0o644
            archive.addfile(entry, io.BytesIO(body))
    context.seek(0)
    said = []
    for line in client.api.build(
        fileobj=context,
        custom_context=True,
        tag=tag,
        buildargs={"BASE": BASE, **(buildargs or {})},
        rm=True,
        forcerm=True,
        decode=True,
        network_mode="none",
    ):
        said.append(line.get("stream", ""))
        if "error" in line:
            raise RuntimeError(f"{''.join(said)}\n{line['error']}")


def ensure_base(
    client: docker.DockerClient,
    name: str = BASE,
    requirements: Path = REQUIREMENTS,
    programs: tuple[Path, ...] = (),
) -> None:
    """Python with what the requirements pin, and further programs with their libraries."""
    if client.api.images(name):
        return
    path = _kept_base(requirements, programs)
    repository, _, tag = name.rpartition(":")
    variables = "PATH=/usr/local/bin:/bin PYTHONPATH=/usr/local/lib/packages LANG=C.UTF-8"
    client.api.import_image_from_file(
        str(path), repository=repository, tag=tag, changes=[f"ENV {variables}"]
    )


def _kept_base(requirements: Path, programs: tuple[Path, ...]) -> Path:
    """Written beside and renamed: two test runs at once never read half a base."""
    made_of = f"{sys.version}{programs}".encode() + Path(__file__).read_bytes()
    mark = hashlib.sha256(requirements.read_bytes() + made_of).hexdigest()[:16]
    path = Path(tempfile.gettempdir()) / f"trailer-test-base-{mark}.tar"
    if not path.exists():
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            with tarfile.open(fileobj=file, mode="w") as archive:
                _fill(archive, requirements, programs)
            Path(file.name).rename(path)
    return path


def _fill(archive: tarfile.TarFile, requirements: Path, further: tuple[Path, ...]) -> None:
    with tarfile.open(fileobj=io.BytesIO(root_filesystem())) as small:
        for member in small:
            archive.addfile(member, small.extractfile(member) if member.isfile() else None)
    python = Path(sys.executable).resolve()
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    stdlib = Path(sysconfig.get_path("stdlib"))
    programs = [python, *(stdlib / "lib-dynload").glob("*.so"), *further]
    for program in further:
        archive.add(program.resolve(), f"usr/local/bin/{program.name}")
    archive.add(python, f"usr/local/bin/{version}")
    for name in ("python3", "python"):
        link = tarfile.TarInfo(f"usr/local/bin/{name}")
        link.type, link.linkname = tarfile.SYMTYPE, version
        archive.addfile(link)
    archive.add(stdlib, f"usr/local/lib/{version}", filter=_is_used)
    archive.add("/usr/share/zoneinfo/Etc/UTC", "usr/share/zoneinfo/UTC")
    for top in _packages(requirements):
        archive.add(top, f"usr/local/lib/packages/{top.name}")
        programs += [file for file in top.rglob("*.so*") if file.is_file()]
    for library in sorted(libraries_of(programs)):
        # A package's own came with it.
        if "site-packages" not in library.parts:
            archive.add(library.resolve(), str(library).lstrip("/"))


def _is_used(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    parts = Path(member.name).parts[4:]
    useless = member.name.endswith(".a") or ".opt-" in member.name
    return None if useless or _UNUSED & set(parts) else member


def _packages(requirements: Path) -> list[Path]:
    """Files and folders that the pinned packages of this platform, and pip, have here."""
    names = re.findall(r"^([\w.-]+)==[^;]*?(?:;.*)?\\?$", requirements.read_text(), re.MULTILINE)
    found = set()
    for name in [*names, "pip"]:
        with suppress(PackageNotFoundError):
            here = distribution(name)
            tops = {file.parts[0] for file in here.files or () if file.parts[0] != ".."}
            found |= {Path(str(here.locate_file(top))) for top in tops - {"__pycache__"}}
    return sorted(found)


def libraries_of(programs: Iterable[Path]) -> set[Path]:
    """What the dynamic linker would load for them, under the names it looks for."""
    listed = subprocess.run(
        ["ldd", *(str(program) for program in programs)],
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    return {Path(name) for name in re.findall(r"(?:=> |^\s+)(/\S+) \(", listed, re.MULTILINE)}

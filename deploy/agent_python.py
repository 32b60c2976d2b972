"""Packs this machine's own Python with the agent as an image, as `docker save` would.

For `make run` where no base image can be had: without a registry, and without an engine. Run by
the Python of the virtual environment, which holds the agent's packages. The image has the
interpreter, its library, those packages, the shared libraries that they load, and no shell.
"""

from __future__ import annotations

import importlib.metadata
import io
import os
import py_compile
import re
import ssl
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import certifi
from agent_archive import finish, image_config

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = "usr/local/lib/trailer"
ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "PYTHONPATH": f"/{PACKAGES}",
}
# Of the standard library: what no agent imports.
UNUSED = {
    "test",
    "tests",
    "idlelib",
    "tkinter",
    "turtledemo",
    "ensurepip",
    "lib2to3",
    "pydoc_data",
}
UNUSED |= {"site-packages", "dist-packages"}
TEXTS = {
    "etc/passwd": "root:x:0:0:root:/root:/sbin/nologin\n",
    "etc/group": "root:x:0:\n",
    "etc/nsswitch.conf": "hosts: files dns\n",
}
FOLDERS = (
    *(("root", 0o700, 0), ("proc", 0o755, 0), ("sys", 0o755, 0), ("dev", 0o755, 0)),
    *(("tmp", 0o1777, 0), ("var/lib/trailer", 0o755, 10001), ("run/trailer", 0o1777, 10001)),
)


def main() -> None:
    """`agent_python.py <folder>`, with VERSION and PROTOCOL in the environment."""
    folder = Path(sys.argv[1])
    if sys.platform != "linux":
        raise SystemExit(
            "Agents run on Linux, and this machine's Python is made for another system."
        )
    folder.mkdir(parents=True, exist_ok=True)
    version, protocol = os.environ["VERSION"], os.environ["PROTOCOL"]
    layer = folder / "layer"
    with tarfile.open(layer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        fill(archive)
    finish(folder, layer, version, image_config(version, protocol, ENVIRONMENT))


def fill(archive: tarfile.TarFile) -> None:
    """All files of the image, each once, with neither the time nor the owner that it has here."""
    python = Path(sys.executable).resolve()
    short = f"python{sys.version_info.major}.{sys.version_info.minor}"
    stdlib = Path(sysconfig.get_path("stdlib"))
    for name, mode, owner in FOLDERS:
        entry = tarfile.TarInfo(name)
        entry.type, entry.mode, entry.uid, entry.gid = tarfile.DIRTYPE, mode, owner, owner
        archive.addfile(entry)
    for name, text in TEXTS.items():
        add_text(archive, name, text.encode())
    archive.add(python, f"usr/local/bin/{short}", filter=plain)
    for name in ("python3", "python"):
        link = tarfile.TarInfo(f"usr/local/bin/{name}")
        link.type, link.linkname = tarfile.SYMTYPE, short
        archive.addfile(link)
    archive.add(stdlib, f"usr/local/lib/{short}", filter=used)
    tops = sorted(package_files(ROOT / "deploy" / "agent-requirements.txt"))
    for top in tops:
        archive.add(top, f"{PACKAGES}/{top.name}", filter=plain)
    programs = [python, *stdlib.rglob("lib-dynload/*.so")]
    programs += [path for top in tops for path in top.rglob("*.so*") if path.is_file()]
    for library in sorted(libraries_of(programs)):
        archive.add(library.resolve(), str(library).lstrip("/"), filter=plain)
    add_certificates(archive)
    add_agent(archive)


def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Root's. The time of compiled Python's source stays, because it is written in the result."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def used(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """None for what the agent does not need of the standard library."""
    parts = Path(member.name).parts[4:]
    useless = member.name.endswith(".a") or ".opt-" in member.name
    return None if useless or UNUSED & set(parts) else plain(member)


def package_files(requirements: Path) -> set[Path]:
    """Files and folders that the pinned packages for this platform have here. A missing one is an
    error: the image would be made, and no agent would start from it."""
    found, missing = set(), []
    for name, marker in pinned(requirements.read_text()):
        try:
            here = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            if not marker:
                missing.append(name)
            continue
        tops = {file.parts[0] for file in here.files or () if file.parts[0] not in ("..", "bin")}
        found |= {Path(str(here.locate_file(top))) for top in tops - {"__pycache__"}}
    if missing:
        raise SystemExit(f"The agent's packages are not installed here: {', '.join(missing)}.")
    return found


def pinned(text: str) -> Iterator[tuple[str, str]]:
    """(name, condition) of each requirement; only some platforms need one with a condition."""
    for line in text.splitlines():
        found = re.match(r"([\w.-]+)(?:\[[^\]]*\])?==[^;\s\\]+\s*(?:;\s*([^\\]+))?", line)
        if found:
            yield found[1], (found[2] or "").strip()


def libraries_of(programs: Iterable[Path]) -> set[Path]:
    """What the dynamic linker would load for them, under the names that it looks for. Those in
    packages' own folders are there already."""
    try:
        listed = subprocess.run(
            ["ldd", *map(str, programs)], capture_output=True, text=True, check=False
        ).stdout
    except FileNotFoundError:
        raise SystemExit(
            "This machine has no ldd command, which names shared libraries."
        ) from None
    names = re.findall(r"(?:=> |^\s+)(/\S+) \(", listed, re.MULTILINE)
    found = {Path(name) for name in names if "-packages" not in name}
    # Loaded by name when an address is looked up; part of libc itself since 2.34.
    for libc in [path for path in found if path.name == "libc.so.6"]:
        found |= set(libc.parent.glob("libnss_dns.so.2")) | set(
            libc.parent.glob("libnss_files.so.2")
        )
    return found


def add_certificates(archive: tarfile.TarFile) -> None:
    """Where this OpenSSL looks for them. Not the machine's own, which may trust more: those that
    the agent's HTTP client brings along."""
    place = ssl.get_default_verify_paths().openssl_cafile
    add_text(archive, place.lstrip("/"), Path(certifi.where()).read_bytes())


def add_agent(archive: tarfile.TarFile) -> None:
    """Compiled as well: the health check starts Python every half minute."""
    for path in sorted((ROOT / "agent").rglob("*.py")):
        name = Path("opt/trailer", path.relative_to(ROOT))
        add_text(archive, str(name), path.read_bytes())
        with tempfile.TemporaryDirectory() as folder:
            made = Path(folder) / "made"
            mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
            py_compile.compile(str(path), str(made), f"/{name}", True, invalidation_mode=mode)
            tag = f"{path.stem}.{sys.implementation.cache_tag}.pyc"
            add_text(archive, str(name.parent / "__pycache__" / tag), made.read_bytes())


def add_text(archive: tarfile.TarFile, name: str, body: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(body), 0o644
    archive.addfile(entry, io.BytesIO(body))


if __name__ == "__main__":
    main()

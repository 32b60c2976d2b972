"""Packs the machine it runs on as an image of the agent, as `docker save` would.

Run by deploy/server.Dockerfile in a stage that holds what deploy/agent.Dockerfile makes: a build
has no engine to ask for an image, and the server's image is to hold the agent's. One layer, and
the settings of that Dockerfile; a test compares them with an image that was built from it.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import platform
import sys
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "i686": "386"}
SETTINGS = {
    "PYTHONUNBUFFERED": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "TRAILER_AGENT_STATE_DIR": "/var/lib/trailer",
    "TRAILER_AGENT_HEALTH_FILE": "/run/trailer/health.json",
}
SECOND = 1_000_000_000
HEALTH = {
    "Test": ["CMD", "python3", "-m", "agent", "health"],
    "Interval": 30 * SECOND,
    "Timeout": 5 * SECOND,
    "StartPeriod": 60 * SECOND,
    "Retries": 3,
}
# The engine's own, and those of the build.
LEFT_OUT = {"proc", "sys", "dev", "tmp", "build", "agent-images", ".dockerenv"}
LEFT_OUT |= {"etc/resolv.conf", "etc/hosts", "etc/hostname"}
NOT_KEPT = {"HOSTNAME", "HOME", "PWD", "VERSION", "PROTOCOL"}


def main() -> None:
    """`agent_archive.py <folder>`, with the stage's arguments in the environment."""
    version, protocol, folder = os.environ["VERSION"], os.environ["PROTOCOL"], Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    layer = folder / "layer"
    write_layer(layer)
    base = {
        name: value
        for name, value in os.environ.items()
        if name not in NOT_KEPT and not name.lower().endswith("_proxy")
    }
    finish(folder, layer, version, image_config(version, protocol, base))


def finish(folder: Path, layer: Path, version: str, config: dict[str, object]) -> None:
    """Leave `<sha256>.tar.gz` and the `<architecture>.json` that names it, of this one layer."""
    name = f"trailer.invalid/agent:{version}"
    architecture = str(config["architecture"])
    archive = folder / "archive"
    config["rootfs"] = {"type": "layers", "diff_ids": [f"sha256:{digest_of(layer)}"]}
    text = json.dumps(config).encode()
    digest = write_archive(archive, layer, text, name)
    layer.unlink()
    archive.rename(folder / f"{digest}.tar.gz")
    entry = {
        "image": name,
        "version": version,
        "architecture": architecture,
        "digest": digest,
        "config": hashlib.sha256(text).hexdigest(),
    }
    (folder / f"{architecture}.json").write_text(json.dumps(entry))


def write_layer(path: Path) -> None:
    """All files of this machine that an image has, in a fixed order."""
    with tarfile.open(path, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for place, folders, files in os.walk("/"):
            folders[:] = sorted(name for name in folders if is_kept(place, name))
            for name in sorted([*folders, *files]):
                if is_kept(place, name):
                    found = Path(place, name)
                    archive.add(found, str(found).lstrip("/"), recursive=False)
        for name, mode in (("proc", 0o755), ("sys", 0o755), ("dev", 0o755), ("tmp", 0o1777)):
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, mode
            archive.addfile(folder)


def is_kept(place: str, name: str) -> bool:
    """False for what an engine brings along, and for sockets, which no archive can hold."""
    found = Path(place, name)
    if str(found).lstrip("/") in LEFT_OUT or os.path.ismount(found):
        return False
    return found.is_symlink() or found.is_dir() or found.is_file()


def image_config(version: str, protocol: str, base: Mapping[str, str]) -> dict[str, object]:
    """What deploy/agent.Dockerfile sets, on top of its base's environment."""
    config: dict[str, object] = {
        "Env": [f"{name}={value}" for name, value in {**base, **SETTINGS}.items()],
        "Entrypoint": ["python3", "-m", "agent"],
        "Cmd": ["run"],
        "WorkingDir": "/opt/trailer",
        "StopSignal": "SIGTERM",
        "Healthcheck": HEALTH,
        "Labels": {
            "org.opencontainers.image.title": "Trailer agent",
            "org.opencontainers.image.version": version,
            "trailer.version": version,
            "trailer.protocol": protocol,
        },
    }
    return {
        "architecture": ARCHITECTURES.get(platform.machine(), platform.machine()),
        "os": "linux",
        "created": "1970-01-01T00:00:00Z",
        "config": config,
        "history": [{"created_by": "deploy/agent.Dockerfile"}],
    }


def write_archive(path: Path, layer: Path, config: bytes, name: str) -> str:
    """The digest of the compressed archive."""
    config_name = f"{hashlib.sha256(config).hexdigest()}.json"
    manifest = [{"Config": config_name, "RepoTags": [name], "Layers": ["layer.tar"]}]
    with (
        path.open("wb") as file,
        gzip.GzipFile(fileobj=file, mode="wb", compresslevel=6, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as archive,
    ):
        for text_name, text in (
            ("manifest.json", json.dumps(manifest).encode()),
            (config_name, config),
        ):
            entry = tarfile.TarInfo(text_name)
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text))
        entry = tarfile.TarInfo("layer.tar")
        entry.size = layer.stat().st_size
        with layer.open("rb") as body:
            archive.addfile(entry, body)
    return digest_of(path)


def digest_of(path: Path) -> str:
    """SHA-256 in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


if __name__ == "__main__":
    main()

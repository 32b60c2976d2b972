"""Archives as `docker save` writes them, without an engine."""

import gzip
import io
import json
import tarfile
from typing import Any

from agent.version import VERSION

AGENT_NAME = f"trailer.invalid/agent:{VERSION}"


def saved_image(
    names: list[str] | None = None,
    *,
    version: str = VERSION,
    architecture: str = "amd64",
    system: str = "linux",
    layer: bytes = b"files",
    packed: bool = False,
    index: list[str] | None = None,
) -> bytes:
    """The manifest comes last, as engines write it; `index`: names as newer ones add them."""
    config: dict[str, Any] = {
        "architecture": architecture,
        "os": system,
        "config": {"Labels": {"trailer.version": version}},
    }
    manifest = [
        {
            "Config": "config.json",
            "RepoTags": [AGENT_NAME] if names is None else names,
            "Layers": ["layer.tar"],
        }
    ]
    rows = [{"annotations": {"io.containerd.image.name": name}} for name in index or ()]
    further = [("index.json", json.dumps({"manifests": rows}).encode())] if index else []
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, body in (
            ("layer.tar", layer),
            ("config.json", json.dumps(config).encode()),
            *further,
            ("manifest.json", json.dumps(manifest).encode()),
        ):
            entry = tarfile.TarInfo(name)
            entry.size = len(body)
            archive.addfile(entry, io.BytesIO(body))
    return gzip.compress(stream.getvalue()) if packed else stream.getvalue()

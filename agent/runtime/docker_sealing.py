"""A committed image's configuration as an archive of its own, without the container it came from;
pure, a neighbour of `docker_requests`."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# By this the engine's builder marks steps that only changed the configuration.
_NO_FILES = "#(nop)"


def sealed_archive(
    seen: Mapping[str, Any], history: Sequence[Mapping[str, Any]], target: str
) -> bytes:
    """What `docker load` takes; the layers are named but not in it, since the engine has them."""
    layers = list(seen["RootFS"]["Layers"])
    config = {
        "architecture": seen["Architecture"],
        "os": seen["Os"],
        "created": seen["Created"],
        "config": seen["Config"],
        "rootfs": {"type": "layers", "diff_ids": layers},
        "history": _history(history, len(layers)),
    }
    body = json.dumps(config).encode()
    name = f"{hashlib.sha256(body).hexdigest()}.json"
    places = [f"{number}/layer.tar" for number in range(len(layers))]
    manifest = [{"Config": name, "RepoTags": [target], "Layers": places}]
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for path, data in ((name, body), ("manifest.json", json.dumps(manifest).encode())):
            entry = tarfile.TarInfo(path)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return stream.getvalue()


def _history(rows: Sequence[Mapping[str, Any]], layers: int) -> list[dict[str, Any]]:
    """Oldest first. The engine does not say which step made a layer, but refuses a history whose
    layers do not add up: what can't be told for certain is left out."""
    oldest_first = list(reversed(rows))
    filled = [row for row in oldest_first if row.get("Size")]
    made = [row for row in oldest_first if row.get("Size") or _NO_FILES not in row["CreatedBy"]]
    with_layer = next((found for found in (filled, made) if len(found) == layers), None)
    if with_layer is None:
        return []
    return [_entry(row, empty=row not in with_layer) for row in oldest_first]


def _entry(row: Mapping[str, Any], *, empty: bool) -> dict[str, Any]:
    moment = datetime.fromtimestamp(row["Created"], UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    entry = {"created": moment, "created_by": row["CreatedBy"], "comment": row["Comment"]}
    return entry | ({"empty_layer": True} if empty else {})

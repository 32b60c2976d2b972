"""The archive that frees a committed image of its container's environment."""

import io
import json
import tarfile
from typing import Any

from agent.runtime.docker_sealing import sealed_archive

SEEN: dict[str, Any] = {
    "Architecture": "amd64",
    "Os": "linux",
    "Created": "2026-11-16T04:00:00Z",
    "Config": {"Env": ["TOKEN="], "Labels": {"a": "b"}},
    "ContainerConfig": {"Env": ["TOKEN=hunter2"]},
    "Parent": "sha256:1",
    "RootFS": {"Layers": ["sha256:base", "sha256:top"]},
}


def row(created_by: str, size: int) -> dict[str, Any]:
    return {"Created": 1794812037, "CreatedBy": created_by, "Comment": "", "Size": size}


def opened(history: list[dict[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """(configuration, manifest)"""
    archive = sealed_archive(SEEN, history, "trailer/i:latest")
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        texts = {
            name: (files.extractfile(name) or io.BytesIO()).read() for name in files.getnames()
        }
    (manifest,) = json.loads(texts["manifest.json"])
    return json.loads(texts[manifest["Config"]]), manifest


def test_it_holds_the_configuration_and_names_the_layers_but_no_container() -> None:
    config, manifest = opened([row("sh", 5), row("", 100)])
    assert config["config"] == SEEN["Config"]
    assert config["rootfs"]["diff_ids"] == ["sha256:base", "sha256:top"]
    assert "hunter2" not in json.dumps(config)
    assert manifest["RepoTags"] == ["trailer/i:latest"]
    assert len(manifest["Layers"]) == 2


def test_the_history_stays_where_its_layers_add_up() -> None:
    nop = "/bin/sh -c #(nop) ENV A=b"
    config, _ = opened([row("sh", 5), row(nop, 0), row("", 100)])
    assert [entry["created_by"] for entry in config["history"]] == ["", nop, "sh"]
    assert [entry.get("empty_layer", False) for entry in config["history"]] == [False, True, False]
    # A step that wrote nothing has a layer all the same.
    config, _ = opened([row("sh", 0), row(nop, 0), row("", 100)])
    assert [entry.get("empty_layer", False) for entry in config["history"]] == [False, True, False]
    config, _ = opened([row("sh", 5), row("one", 7), row("", 100)])
    assert config["history"] == []

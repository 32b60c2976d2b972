"""The agent's image as the server's Dockerfile packs it, on an engine."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from contextlib import closing
from typing import TYPE_CHECKING, Any

from agent.version import VERSION
from hosts.agent_images.contents import contents_of
from hosts.agent_images.store import noted_problem
from tests.ground.agent_image import (
    AGENT,
    BASE,
    ROOT,
    agent_files,
    build,
    ensure_agent_image,
    ensure_base,
)
from trailer.standalone.agent_image import AgentImageMaker

if TYPE_CHECKING:
    from pathlib import Path

    import docker
    import pytest

    from hosts.agent_images.store import AgentArchive
    from tests.ground.engine import PrivateEngine

STAGE = "trailer-test/agent-images:1"
NAME = f"trailer.invalid/agent:{VERSION}"
# What a container gets of its image.
KEPT = ("Entrypoint", "Cmd", "WorkingDir", "StopSignal", "Healthcheck", "Labels", "User")


def packed(client: docker.DockerClient, folder: Path) -> dict[str, bytes]:
    """The files that the stage leaves for the server's image."""
    dockerfile = (ROOT / "deploy" / "server.Dockerfile").read_text()
    stages = dockerfile.rpartition("\nFROM ${BASE}")[0].replace("AGENT_BASE", "BASE")
    script = "deploy/agent_archive.py"
    build(client, STAGE, stages, agent_files() | {script: (ROOT / script).read_bytes()})
    made = client.api.create_container(STAGE, ["true"])
    try:
        stream = client.api.get_archive(made["Id"], "/agent-images")[0]
        with tarfile.open(fileobj=io.BytesIO(b"".join(stream))) as archive:
            archive.extractall(folder, filter="data")
    finally:
        client.api.remove_container(made["Id"])
        client.api.remove_image(STAGE)
    return {path.name: path.read_bytes() for path in (folder / "agent-images").iterdir()}


def config_of(client: docker.DockerClient, image: str) -> dict[str, Any]:
    api: Any = client.api
    config = api.inspect_image(image)["Config"]
    named = {name: config.get(name) or None for name in KEPT}
    return named | {"Env": sorted(config["Env"])}


def made_by_a_server(
    client: docker.DockerClient, base: str, settings: Any, folder: Path
) -> AgentArchive:
    """By a standalone server with this base, and loaded."""
    settings.TRAILER_DATA_DIR, settings.TRAILER_AGENT_BASE = folder, base
    made = AgentImageMaker().make()
    assert made is not None, noted_problem()
    if client.api.images(NAME):
        client.api.remove_image(NAME, force=True)
    client.images.load(made.path.read_bytes())
    return made


def test_a_standalone_server_builds_the_image_on_its_engine(
    clean_engine: PrivateEngine, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", clean_engine.url)
    with closing(clean_engine.client(timeout=300)) as client:
        ensure_agent_image(client)
        ensure_base(client)
        try:
            made = made_by_a_server(client, BASE, settings, tmp_path)
            assert (made.image, noted_problem()) == (NAME, "")
            assert config_of(client, NAME) == config_of(client, AGENT)
            # An engine of layers: the id by which an overseer sees that it has the image.
            assert client.images.get(NAME).id == f"sha256:{made.config}"
        finally:
            client.api.remove_image(NAME, force=True)


def test_without_a_base_image_it_is_made_of_the_servers_own_python(
    clean_engine: PrivateEngine, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    with closing(clean_engine.client(timeout=300)) as client:
        ensure_agent_image(client)
        made = made_by_a_server(client, "registry.invalid/python:3", settings, tmp_path)
        try:
            ours, other = config_of(client, NAME), config_of(client, AGENT)
            assert set(other.pop("Env")) - set(ours.pop("Env")) <= {
                "PATH=/usr/local/bin:/bin",
                "PYTHONPATH=/usr/local/lib/packages",
            }
            assert ours == other
            assert client.images.get(NAME).id == f"sha256:{made.config}"
            # Certificates where the realtime socket looks for them, and all modules of the agent.
            checks = (
                "import ssl, pkgutil, importlib, agent;"
                "assert ssl.create_default_context().get_ca_certs();"
                "[importlib.import_module(m.name) for m in"
                " pkgutil.walk_packages(agent.__path__, 'agent.') if '__main__' not in m.name];"
                "print('fine')"
            )
            said = client.containers.run(
                NAME, ["-c", checks], entrypoint="python3", network_mode="none", remove=True
            )
            assert said.decode().strip() == "fine"
        finally:
            client.api.remove_image(NAME, force=True)


def test_the_servers_image_holds_an_agent_like_the_one_of_its_own_dockerfile(
    clean_engine: PrivateEngine, tmp_path: Path
) -> None:
    with closing(clean_engine.client(timeout=300)) as client:
        ensure_agent_image(client)
        files = packed(client, tmp_path)
        [text] = [body for name, body in files.items() if name.endswith(".json")]
        entry = json.loads(text)
        body = files[f"{entry['digest']}.tar.gz"]
        assert hashlib.sha256(body).hexdigest() == entry["digest"]
        assert len(files) == 2
        found = contents_of(
            tmp_path / "agent-images" / f"{entry['digest']}.tar.gz", version=VERSION
        )
        assert (found.image, found.architecture) == (entry["image"], entry["architecture"])
        client.images.load(body)
        try:
            assert config_of(client, NAME) == config_of(client, AGENT)
            said = client.containers.run(NAME, ["version"], network_mode="none", remove=True)
            assert said.decode().strip() == VERSION
            owner = ["-c", "import os; s = os.stat('/var/lib/trailer'); print(s.st_uid, s.st_gid)"]
            run = client.containers.run(
                NAME, owner, entrypoint="python3", network_mode="none", remove=True
            )
            assert run.decode().split() == ["10001", "10001"]
        finally:
            client.api.remove_image(NAME)

"""The agent's image that `make run` makes, on a host whose engine has no image and asks nobody."""

from __future__ import annotations

import gzip
import io
import json
import re
import subprocess
import tarfile
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from agent.protocol.naming import agent_image_name
from agent.version import VERSION
from tests.e2e.agent_container import AgentHost
from tests.ground.engine import PrivateEngine
from tests.ground.server import RunningTrailer
from tests.ground.wait import eventually
from tests.ground.ways import Standalone

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

IMAGE = agent_image_name(VERSION)
# No registry has it: the image is made of the server's own Python.
NOWHERE = "registry.invalid/python:3.12-slim"
QUICK = "-e TRAILER_OVERSEER_PATIENCE=30 -e TRAILER_OVERSEER_PAUSE=1"


@pytest.fixture(scope="module")
def bare(swept_machine: None) -> Iterator[PrivateEngine]:
    """A second engine, without any image."""
    private = PrivateEngine()
    try:
        yield private.create()
    finally:
        private.destroy()


@pytest.fixture(scope="module")
def far(bare: PrivateEngine) -> Iterator[AgentHost]:
    # Only a standalone server makes the image by itself.
    server = RunningTrailer(bare.url, way=Standalone)
    scene = AgentHost(bare, image="", server=server, TRAILER_AGENT_BASE=NOWHERE)
    try:
        yield scene
    finally:
        scene.close()


def paste(far: AgentHost, command: str) -> subprocess.CompletedProcess[str]:
    """The whole line by a shell on the host; only the engine's socket lies elsewhere here."""
    there = "/var/run/docker.sock:/var/run/docker.sock"
    line = command.replace(there, f"{far.engine.socket}:/var/run/docker.sock")
    assert line != command
    return subprocess.run(
        far.engine.on_host(
            ["env", f"DOCKER_HOST={far.engine.url}", "sh", "-c", f"{line} {QUICK}"]
        ),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def made(far: AgentHost) -> Path:
    [path] = (far.server.folder / "data" / "agent-images").glob("*.tar.gz")
    return path


def test_the_image_is_made_in_the_background_and_the_dialog_says_so_meanwhile(
    far: AgentHost,
) -> None:
    first = far.enrolment()
    if not first["digests"]:
        assert "is being made on this server" in first["problem"]

    def ready() -> Any:
        enrolment = far.enrolment()
        return enrolment if enrolment["digests"] else None

    enrolment = eventually(ready, 180, f"no image: {far.server.log()}", 0.5)
    assert enrolment["problem"] == ""
    assert enrolment["image"] == IMAGE
    assert list(enrolment["digests"].values()) == [made(far).name.removesuffix(".tar.gz")]


def test_an_archive_that_was_tampered_with_is_not_loaded(far: AgentHost) -> None:
    path = made(far)
    right = path.read_bytes()
    command = far.enrolment()["command"]
    try:
        path.write_bytes(right[:-1] + bytes([right[-1] ^ 1]))
        done = paste(far, command)
    finally:
        path.write_bytes(right)
    assert done.returncode != 0
    assert "not the image that this line names. Nothing was loaded." in done.stderr
    assert (far.client.api.images(), far.names()) == ([], set())


def test_a_line_with_another_digest_loads_nothing(far: AgentHost) -> None:
    command = re.sub(r"digest=[0-9a-f]{64}", "digest=" + "0" * 64, far.enrolment()["command"])
    done = paste(far, command)
    assert done.returncode != 0
    assert "could not be fetched" in done.stderr
    assert (far.client.api.images(), far.names()) == ([], set())


def test_the_line_brings_a_host_online_that_had_no_image_at_all(far: AgentHost) -> None:
    assert far.client.api.images() == []
    done = paste(far, far.enrolment()["command"])
    assert done.returncode == 0, done.stderr
    pasted = far.agent()
    assert pasted.attrs["Config"]["Image"] == IMAGE
    host = far.wait_online()
    assert host["engine"]["version"]
    # The first replacement needs no registry either.
    far.wait_replaced(pasted.id)
    eventually(far.works, 30, f"the agent does not work: {far.story()}")
    assert far.host()["agent_image_running"] == IMAGE


def newer(path: Path) -> bytes:
    """The same image with one label more, as another build of it would be."""
    found: dict[str, bytes] = {}
    with tarfile.open(path) as archive:
        for member in archive:
            file = archive.extractfile(member)
            assert file is not None
            found[member.name] = file.read()
    [entry] = json.loads(found["manifest.json"])
    config = json.loads(found[entry["Config"]])
    config["config"]["Labels"]["trailer.newer"] = "1"
    found[entry["Config"]] = json.dumps(config).encode()
    body = io.BytesIO()
    with tarfile.open(fileobj=body, mode="w") as archive:
        for name, content in found.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return gzip.compress(body.getvalue(), 1)


def rolled_out(far: AgentHost) -> Any:
    far.user.post("/agent-rollouts/", {"image": IMAGE}, status=201)

    def ended() -> Any:
        newest = far.user.get("/agent-rollouts/")[0]
        return newest if newest["status"] != "running" else None

    return eventually(ended, 120, f"the rollout goes on and on: {far.story()}", 0.3)


def test_an_update_of_agents_loads_the_newer_image_from_the_server(
    far: AgentHost, tmp_path: Path
) -> None:
    old = far.agent()
    body = newer(made(far))
    (tmp_path / "agent.tar.gz").write_bytes(body)
    far.server.manage("agent_image", str(tmp_path / "agent.tar.gz"))
    # What was sent is not what is named: nothing is loaded, and the old agent goes on.
    path = made(far)
    path.write_bytes(body[:-1] + bytes([body[-1] ^ 1]))
    refused = rolled_out(far)
    assert refused["status"] == "halted", refused
    assert "has another digest than it names. It was not loaded." in refused["message"]
    assert far.agent().id == old.id
    path.write_bytes(body)
    assert rolled_out(far)["status"] == "done"
    new = far.wait_replaced(old.id)
    assert new.labels["trailer.newer"] == "1"
    eventually(far.works, 30, "the new agent does not work")
    [kept] = [row for row in far.client.api.images() if IMAGE in (row["RepoTags"] or ())]
    assert kept["Id"] == new.attrs["Image"]


def test_an_image_that_nobody_hands_out_is_a_sentence_and_the_agent_goes_on(
    far: AgentHost,
) -> None:
    old = far.agent()
    # Anybody may have it on Docker Hub; nobody there is asked.
    far.wants("trailer/agent:latest")

    def told() -> Any:
        return far.host()["update_message"]

    said = eventually(told, 60, f"the failure is not shown: {far.story()}", 0.3)
    assert "The server hands out no archive of trailer/agent:latest" in said
    assert said in far.host()["message"]
    with closing(far.engine.client()) as client:
        assert not client.api.images("trailer/agent")
    far.wants("")
    eventually(lambda: far.names() == {"trailer-agent"}, 60, far.story(), 0.3)
    assert far.agent().id == old.id

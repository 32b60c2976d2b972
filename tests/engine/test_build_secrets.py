"""Builds with secrets on a real engine: a step reads them, and nothing that is left holds one."""

from __future__ import annotations

import os
import subprocess
import threading
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING

import pytest

from agent.engine_requests import BuildRequest, Credential
from agent.errors import NotFound
from agent.protocol import naming
from agent.runtime.docker import DockerRuntime
from agent.runtime.docker_client import Connections
from agent.runtime.docker_disk import DockerDisk
from tests.engine.agent_forks import AgentForks
from tests.engine.desired_host import DesiredHost
from tests.engine.snapshot_scene import wait_for_end
from tests.ground.images import BUSYBOX, push
from tests.ground.wait import eventually

if TYPE_CHECKING:
    from pathlib import Path

    import docker

    from tests.ground.engine import PrivateEngine
    from tests.ground.registry import LocalRegistry

CANARY = "canary-build-7f3a"
REF = "trailer/secret:latest"
MOUNT = "RUN --mount=type=secret,id=token"
# For so many seconds, and only in this run, a step sleeps.
CANCELLED, KILLED = f"1{os.getpid():08d}", f"2{os.getpid():08d}"


@pytest.fixture
def runtime(clean_engine: PrivateEngine) -> DockerRuntime:
    return DockerRuntime({"DOCKER_HOST": clean_engine.url})


def request(*steps: str, base: str = BUSYBOX, **fields: object) -> BuildRequest:
    dockerfile = "\n".join((f"FROM {base}", *steps, ""))
    given = {"ref": REF, "dockerfile": dockerfile, "secrets": {"token": CANARY}, **fields}
    return BuildRequest(**given)  # type: ignore[arg-type]


def run(
    runtime: DockerRuntime, build: BuildRequest, credential: Credential | None = None
) -> tuple[str, str]:
    """What it printed, and its error."""
    stream = runtime.build_image(build, credential)
    outputs = list(stream)
    stream.close()
    error = next((output.error for output in outputs if output.error), "")
    assert bool(error) != any(output.is_last for output in outputs)
    return "".join(output.text for output in outputs), error


def steps(seconds: str) -> list[str]:
    """Processes of a step that sleeps for so long: BuildKit's are no containers of the engine."""
    found = subprocess.run(
        ["pgrep", "-f", f"^sleep {seconds}$"], capture_output=True, text=True, check=False
    )
    return found.stdout.split()


def sessions() -> list[str]:
    return [found.name for found in threading.enumerate() if found.name.startswith("session-")]


def test_a_step_reads_the_secret_and_the_image_holds_nothing_of_it(
    runtime: DockerRuntime, clean_engine: PrivateEngine, engine_client: docker.DockerClient
) -> None:
    build = request(
        "ARG WORD",
        f"{MOUNT} cp /run/secrets/token /dev/shm/x && sha256sum < /run/secrets/token > /sum",
        "COPY a/b.txt /b.txt",
        "RUN echo $WORD >> /b.txt; echo said; ls /run/secrets || true",
        "FROM first AS second",
        "RUN false",
        base=f"{BUSYBOX} AS first",
        files=(("a/b.txt", "hello\n"),),
        build_args={"WORD": "world"},
        labels={"trailer.image": "i"},
        target="first",
        mark="trailer-build-test",
        secrets_mark="trailer-secrets-1",
    )
    text, error = run(runtime, build)
    assert error == ""
    assert "Step 2/4 : " in text
    assert "\nsaid\n" in text
    image = engine_client.images.get(REF)
    assert image.attrs["Config"]["Labels"]["trailer.image"] == "i"
    printed = engine_client.containers.run(
        REF, ["sh", "-c", "cat /b.txt; cat /sum"], remove=True
    ).decode()
    assert printed.split() == ["hello", "world", sha256(CANARY.encode()).hexdigest(), "-"]
    saved = b"".join(image.save())
    assert b"hello\nworld\n" in saved
    held = {"log": text, "inspect": repr(image.attrs), "history": repr(image.history())}
    assert [where for where, content in held.items() if CANARY in content] == []
    assert CANARY.encode() not in saved
    # Nor do the engine's own files, its cache of steps among them.
    found = ["grep", "-rlF", CANARY, str(clean_engine.data_root)]
    assert subprocess.run(found, capture_output=True, check=False).stdout == b""
    # The same again is there already; other secrets, as their mark says, make it anew.
    assert "---> Using cache" in run(runtime, build)[0].partition("Step 2/4")[2]
    again, _ = run(runtime, replace(build, secrets_mark="trailer-secrets-2"))
    assert "---> Using cache" not in again.partition("Step 2/4")[2]
    engine_client.api.remove_image(REF)


def test_the_engine_prunes_its_cache_by_age_and_keeps_what_is_young(
    runtime: DockerRuntime, clean_engine: PrivateEngine, engine_client: docker.DockerClient
) -> None:
    build = request(f"{MOUNT} echo of today > /made")
    run(runtime, build)
    disk = DockerDisk()
    disk._engine = Connections({"DOCKER_HOST": clean_engine.url})
    assert "build cache" not in disk.prune_images()
    assert "---> Using cache" in run(runtime, build)[0].partition("Step 2/2")[2]
    engine_client.api.remove_image(REF)


def test_what_goes_wrong_is_said_in_a_sentence(runtime: DockerRuntime) -> None:
    _, error = run(runtime, request(f"{MOUNT},required=true true", secrets={"other": CANARY}))
    assert error.startswith("The Dockerfile mounts the build secret token, which this image does")
    wrong = request(f'{MOUNT} test "$(cat /run/secrets/token)" = right')
    _, error = run(runtime, wrong)
    assert error.endswith("= right' returned a non-zero code: 1")
    _, error = run(runtime, request("RUM true"))
    assert "parse error line 2: unknown instruction: RUM" in error
    with pytest.raises(NotFound):
        runtime.inspect_image(REF)


def test_a_base_that_the_engine_itself_asks_a_registry_for_needs_its_password(
    runtime: DockerRuntime,
    engine_client: docker.DockerClient,
    private_registry: LocalRegistry,
) -> None:
    base = private_registry.reference("team/secret-base")
    push(engine_client, BUSYBOX, base, private_registry.auth)

    def attempt(password: str) -> str:
        given = Credential(server=private_registry.address, username="alice", password=password)
        return run(runtime, request(f"{MOUNT} true", base=base, pull_base=True), given)[1]

    assert attempt("wrong")
    assert attempt("s3cret") == ""
    for ref in (REF, base):
        engine_client.api.remove_image(ref)


def test_a_cancelled_build_stops_on_the_engine_and_leaves_nothing(
    runtime: DockerRuntime, engine_client: docker.DockerClient
) -> None:
    before = {found["Id"] for found in engine_client.api.images(all=True)}
    stream = runtime.build_image(request(f"{MOUNT} sleep {CANCELLED}"), None)
    thread = threading.Thread(target=lambda: list(stream), daemon=True)
    thread.start()
    eventually(lambda: steps(CANCELLED), 30, "the step does not run")
    assert len(sessions()) == 1
    stream.close()
    thread.join(5)
    assert not thread.is_alive()
    eventually(lambda: not steps(CANCELLED), 5, "the step still runs")
    eventually(lambda: not sessions(), 5, "a session is still served")
    assert {found["Id"] for found in engine_client.api.images(all=True)} == before


def test_an_agent_killed_in_the_middle_leaves_nothing_running_and_the_next_one_builds(
    clean_engine: PrivateEngine, engine_client: docker.DockerClient, tmp_path: Path
) -> None:
    dockerfile = f"FROM {BUSYBOX}\n{MOUNT} cat /run/secrets/token; test -e /go || sleep {KILLED}\n"
    host, forks = DesiredHost(), AgentForks()
    secrets = {"token": CANARY}
    try:
        agent = forks.start(host, clean_engine.url, tmp_path)
        host.build("app", dockerfile, build_secrets=secrets)
        agent.look_again()
        eventually(lambda: steps(KILLED), 30, "the step does not run")
        agent.kill()
        eventually(lambda: not steps(KILLED), 5, "the step still runs")
        host.build("app", dockerfile.replace(KILLED, "0"), number=2, build_secrets=secrets)
        forks.start(host, clean_engine.url, tmp_path)
        result = wait_for_end(host, "app", "finished", number=2)
        assert result.engine_id == engine_client.images.get(naming.build_ref("i-app")).id
        log = host.server.book.logs["b-app-2"].decode()
        assert "•••" in log
        assert CANARY not in log + repr(host.server.cycles())
        engine_client.api.remove_image(naming.build_ref("i-app"), force=True)
    finally:
        forks.close()
        host.close()

"""Triggers of base images on a real engine: seen before the build, whoever fetched the image."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent.engine_requests import BuildRequest, Credential
from agent.errors import EngineError
from agent.fetch.registry import RegistryGate
from agent.runtime.docker import DockerRuntime
from agent.steps import BuildImage
from agent.work.images import ImageWork
from tests.agent.fake_fetch import FakeFetcher
from tests.ground.images import BUSYBOX, push

if TYPE_CHECKING:
    from collections.abc import Iterator

    import docker

    from agent.protocol.report import BuildStatus
    from tests.ground.engine import PrivateEngine
    from tests.ground.registry import LocalRegistry

OTHERS = "trailer/4a1e6c1e-93f5-4b0e-8f83-1f0b5a3f7a11:latest"
REF = "trailer/i-app:latest"
SECRETS: tuple[dict[str, str], ...] = ({}, {"token": "canary-trigger-1"})


@pytest.fixture
def runtime(
    clean_engine: PrivateEngine, engine_client: docker.DockerClient
) -> Iterator[DockerRuntime]:
    made = DockerRuntime({"DOCKER_HOST": clean_engine.url})
    engine_client.images.get(BUSYBOX).tag(OTHERS)
    yield made
    for ref in (OTHERS, REF, "hostile:1"):
        made.remove_image(ref)


def make(runtime: DockerRuntime, ref: str, *lines: str) -> None:
    text = "\n".join((f"FROM {BUSYBOX}", *lines))
    outputs = list(runtime.build_image(BuildRequest(ref=ref, dockerfile=text), None))
    assert outputs[-1].error == ""


def build(
    runtime: DockerRuntime, dockerfile: str, credential: Credential | None = None, **fields: Any
) -> BuildStatus:
    step = BuildImage(
        key="image:i-app",
        name="app",
        cause="wanted",
        image_id="i-app",
        build_id="b-app",
        request=BuildRequest(ref=REF, dockerfile=dockerfile, **fields),
        credential=credential,
    )
    work = ImageWork(
        step,
        runtime,
        timeout=60,
        write=lambda _: None,
        on_progress=lambda _: None,
        registries=RegistryGate(FakeFetcher()),
    )
    ended = work.run()
    assert ended is not None
    return ended


@pytest.mark.parametrize("secrets", SECRETS, ids=["older builder", "BuildKit"])
def test_a_base_whose_trigger_takes_anothers_image_is_refused(
    runtime: DockerRuntime, secrets: dict[str, str]
) -> None:
    make(runtime, "hostile:1", f"ONBUILD COPY --from={OTHERS} /bin/busybox /stolen")
    request = BuildRequest(ref=REF, dockerfile="FROM hostile:1", secrets=secrets)
    with pytest.raises(EngineError, match="has the trigger “COPY --from=trailer/4a1e6c1e"):
        runtime.build_image(request, None)


@pytest.mark.parametrize("secrets", SECRETS, ids=["older builder", "BuildKit"])
@pytest.mark.parametrize("pull_base", [False, True])
def test_one_that_only_a_registry_has_is_fetched_and_looked_at_before(
    runtime: DockerRuntime,
    engine_client: docker.DockerClient,
    registry: LocalRegistry,
    secrets: dict[str, str],
    pull_base: bool,
) -> None:
    refs = {name: registry.reference(f"team/{name}") for name in ("hostile", "harmless")}
    make(runtime, "hostile:1", f"ONBUILD COPY --from={OTHERS} /bin/busybox /stolen")
    push(engine_client, "hostile:1", refs["hostile"])
    make(runtime, "hostile:1", "ONBUILD RUN echo triggered > /made")
    push(engine_client, "hostile:1", refs["harmless"])
    for ref in refs.values():
        runtime.remove_image(ref)
    ended = build(runtime, f"FROM {refs['hostile']}", secrets=secrets, pull_base=pull_base)
    assert ended.status == "failed"
    assert "has the trigger" in ended.message
    text = f"FROM {refs['harmless']} AS one\nFROM one\nRUN cat /made\n"
    ended = build(runtime, text, secrets=secrets, pull_base=pull_base)
    assert (ended.status, ended.message) == ("finished", "")
    for ref in refs.values():
        runtime.remove_image(ref)


@pytest.mark.parametrize("secrets", SECRETS, ids=["older builder", "BuildKit"])
@pytest.mark.parametrize("pull_base", [False, True])
def test_images_of_a_private_registry_are_fetched_with_its_password(
    runtime: DockerRuntime,
    engine_client: docker.DockerClient,
    private_registry: LocalRegistry,
    secrets: dict[str, str],
    pull_base: bool,
) -> None:
    base, tools = (private_registry.reference(f"team/{name}") for name in ("base", "tools"))
    for ref in (base, tools):
        push(engine_client, BUSYBOX, ref, private_registry.auth)
        runtime.remove_image(ref)
    text = f"FROM {base}\nCOPY --from={tools} /bin/busybox /copied\n"

    def attempt(password: str) -> BuildStatus:
        given = Credential(server=private_registry.address, username="alice", password=password)
        return build(runtime, text, given, secrets=secrets, pull_base=pull_base)

    refused = attempt("wrong")
    assert refused.status == "failed"
    assert refused.message.startswith(f"The base image {base} could not be fetched. The registry")
    assert (attempt("s3cret").status, attempt("s3cret").message) == ("finished", "")
    for ref in (REF, base, tools):
        runtime.remove_image(ref)

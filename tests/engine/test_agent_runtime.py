"""The Docker adapter keeps the contract on a real engine, and what only a real one can show."""

import threading
from pathlib import Path
from typing import TYPE_CHECKING

import docker
import pytest

from agent.engine_requests import (
    BuildRequest,
    ContainerRequest,
    Credential,
    NetworkRequest,
)
from agent.errors import EngineError, EngineUnavailable, NotFound
from agent.protocol.spec import MountSpec
from agent.runtime.docker import DockerRuntime
from agent.runtime.port import Look, Output
from tests.agent.runtime_contract import RuntimeContract
from tests.ground.engine import PrivateEngine
from tests.ground.images import BUSYBOX, RUN_UNTIL_STOPPED, push
from tests.ground.proxy import DockerApiProxy
from tests.ground.registry import LocalRegistry
from tests.ground.wait import eventually

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def runtime(clean_engine: PrivateEngine) -> DockerRuntime:
    return DockerRuntime({"DOCKER_HOST": clean_engine.url})


class TestDockerRuntime(RuntimeContract):
    @pytest.fixture
    def runtime(self, clean_engine: PrivateEngine) -> DockerRuntime:
        return DockerRuntime({"DOCKER_HOST": clean_engine.url})

    @pytest.fixture
    def image(self) -> str:
        return BUSYBOX

    @pytest.fixture
    def command(self) -> tuple[str, ...]:
        return tuple(RUN_UNTIL_STOPPED)


def request(name: str = "trailer-web", **fields: object) -> ContainerRequest:
    given = {"image": BUSYBOX, "hostname": "web", "labels": {"trailer.host": "h"}, **fields}
    return ContainerRequest(name=name, **given)  # type: ignore[arg-type]


def test_a_missing_bind_source_is_refused_and_no_folder_appears(
    runtime: DockerRuntime, tmp_path: Path
) -> None:
    source = tmp_path / "missing"
    bind = MountSpec(target="/x", kind="bind", source=str(source))
    with pytest.raises(EngineError, match="bind source path does not exist"):
        runtime.create_container(request(mounts=(bind,)), network_id="", alias="")
    assert not source.exists()


def test_a_hostname_is_a_name_on_the_network_too(runtime: DockerRuntime) -> None:
    """The reason why containers that are replaced side by side have hostnames of their own."""
    lan = runtime.create_network(NetworkRequest(name="trailer-lan"))
    made = runtime.create_container(
        request(hostname="other", command=tuple(RUN_UNTIL_STOPPED)), network_id=lan, alias="web"
    )
    runtime.start_container(made)
    seen = runtime.inspect_container(made)
    assert seen.hostname == "other"
    assert {"other", "web"} <= set(seen.attachments[0].aliases)


def test_an_unchanged_host_is_looked_at_without_inspecting_again(
    clean_engine: PrivateEngine, proxy: DockerApiProxy
) -> None:
    runtime = DockerRuntime({"DOCKER_HOST": proxy.url})
    command = tuple(RUN_UNTIL_STOPPED)
    ids = [
        runtime.create_container(request(f"trailer-{n}", command=command), network_id="", alias="")
        for n in range(5)
    ]
    for container_id in ids:
        runtime.start_container(container_id)
    runtime.observe(Look(host_id="h", full=True))

    def inspected(look: Look) -> int:
        proxy.forget_calls()
        runtime.observe(look)
        return sum(call.template == "/containers/{id}/json" for call in proxy.calls)

    assert inspected(Look(host_id="h", full=False)) == 0
    assert inspected(Look(host_id="h", full=False, changed_ids=frozenset(ids[:1]))) == 1
    runtime.stop_container(ids[1], timeout=1)
    assert inspected(Look(host_id="h", full=False)) == 1
    assert inspected(Look(host_id="h", full=True)) == 5


def test_an_engine_that_is_not_there_is_unavailable_and_says_so(tmp_path: Path) -> None:
    runtime = DockerRuntime({"DOCKER_HOST": f"unix://{tmp_path}/none.sock"})
    with pytest.raises(EngineUnavailable, match="cannot be reached"):
        runtime.observe(Look())
    with pytest.raises(EngineUnavailable, match="cannot be reached"):
        runtime.ping(deadline=1)


def test_half_an_answer_is_an_error_never_an_empty_host(
    clean_engine: PrivateEngine, proxy: DockerApiProxy
) -> None:
    runtime = DockerRuntime({"DOCKER_HOST": proxy.url})
    runtime.observe(Look())
    breaks: list[Callable[[], None]] = [
        lambda: proxy.fail("GET", "/containers/json", 500),
        lambda: proxy.cut("GET", "/networks", None),
        lambda: proxy.cut_stream("GET", "/images/json", 5),
    ]
    for break_it in breaks:
        proxy.reset()
        break_it()
        with pytest.raises(EngineError):
            runtime.observe(Look())
    proxy.reset()
    runtime.observe(Look())


def test_an_endpoint_of_nobody_does_not_hold_a_network(
    clean_engine: PrivateEngine, proxy: DockerApiProxy, engine_client: docker.DockerClient
) -> None:
    """The engine leaves one behind when a container is removed while it is being connected."""
    runtime = DockerRuntime({"DOCKER_HOST": proxy.url})
    lan = runtime.create_network(NetworkRequest(name="trailer-lan"))
    proxy.forget_calls()
    left = {"Containers": {"ep-12ab": {"Name": "trailer-web-next"}}}
    proxy.fail("DELETE", "/networks/.*", 403, f"network {lan} has active endpoints")
    proxy.answer("GET", f"/networks/{lan}", left)
    proxy.answer("POST", f"/networks/{lan}/disconnect", None)
    runtime.remove_network(lan)
    assert [str(call) for call in proxy.mutating_calls] == [
        "DELETE /networks/{id}",
        "POST /networks/{id}/disconnect",
        "DELETE /networks/{id}",
    ]
    assert engine_client.networks.list(names=["trailer-lan"]) == []


def test_a_network_with_a_living_container_is_not_taken_from_it(
    clean_engine: PrivateEngine, proxy: DockerApiProxy, engine_client: docker.DockerClient
) -> None:
    runtime = DockerRuntime({"DOCKER_HOST": proxy.url})
    lan = runtime.create_network(NetworkRequest(name="trailer-lan"))
    engine_client.containers.run(
        BUSYBOX, RUN_UNTIL_STOPPED, name="foreign", network="trailer-lan", detach=True
    )
    with pytest.raises(EngineError, match="active endpoints"):
        runtime.remove_network(lan)
    assert "POST /networks/{id}/disconnect" not in {str(call) for call in proxy.mutating_calls}


def test_a_cancelled_build_stops_on_the_engine_and_leaves_nothing(
    runtime: DockerRuntime, engine_client: docker.DockerClient
) -> None:
    before = len(engine_client.api.images(all=True))
    build = BuildRequest(ref="trailer/slow:latest", dockerfile=f"FROM {BUSYBOX}\nRUN sleep 1000")
    stream = runtime.build_image(build, None)
    outputs: list[Output] = []
    thread = threading.Thread(target=lambda: outputs.extend(stream), daemon=True)
    thread.start()
    eventually(lambda: len(engine_client.api.containers()) == 1)
    stream.close()
    thread.join(5)
    assert not thread.is_alive()
    eventually(lambda: engine_client.api.containers(all=True) == [], 5)
    with pytest.raises(NotFound):
        runtime.inspect_image("trailer/slow:latest")
    assert len(engine_client.api.images(all=True)) == before


def test_a_build_uses_files_arguments_and_target(
    runtime: DockerRuntime, engine_client: docker.DockerClient
) -> None:
    dockerfile = (
        f"FROM {BUSYBOX} AS first\nARG WORD\nCOPY a/b.txt /b.txt\nRUN echo $WORD >> /b.txt\n"
        "FROM first AS second\nRUN false\n"
    )
    build = BuildRequest(
        ref="trailer/files:latest",
        dockerfile=dockerfile,
        files=(("a/b.txt", "hello\n"),),
        build_args={"WORD": "world"},
        target="first",
        labels={"trailer.image": "i"},
    )
    outputs = list(runtime.build_image(build, None))
    assert not [output.error for output in outputs if output.error]
    assert runtime.inspect_image(build.ref).labels["trailer.image"] == "i"
    printed = engine_client.containers.run(build.ref, ["cat", "/b.txt"], remove=True)
    assert printed == b"hello\nworld\n"
    assert max(output.progress or 0 for output in outputs) > 0
    runtime.remove_image(build.ref)


def test_what_is_wrong_with_a_dockerfile_is_told_by_its_own_lines(runtime: DockerRuntime) -> None:
    build = BuildRequest(
        ref="trailer/wrong:latest",
        dockerfile=f"FROM {BUSYBOX}\nRUN true\nRUM true\n",
        labels={"trailer.image": "i"},
    )
    with pytest.raises(EngineError, match="parse error line 3: unknown instruction: RUM"):
        list(runtime.build_image(build, None))


def test_the_step_of_the_labels_goes_unless_something_was_made_of_it(
    runtime: DockerRuntime, engine_client: docker.DockerClient
) -> None:
    def build(ref: str, step: str) -> str:
        text = f"FROM {BUSYBOX}\nRUN {step}\n"
        request = BuildRequest(ref=ref, dockerfile=text, labels={"trailer.image": "step"})
        outputs = list(runtime.build_image(request, None))
        return next(output.labels_step for output in outputs if output.labels_step)

    before = {found["Id"] for found in engine_client.api.images(all=True)}
    step = build("trailer/step:latest", "exit 3")
    assert len(engine_client.api.images(all=True)) == len(before) + 1
    assert runtime.drop_step(step, patience=0)
    assert runtime.drop_step(step, patience=0)
    assert {found["Id"] for found in engine_client.api.images(all=True)} == before
    step = build("trailer/step:latest", "true")
    assert runtime.drop_step(step, patience=0)
    assert runtime.inspect_image("trailer/step:latest").labels["trailer.image"] == "step"
    runtime.remove_image("trailer/step:latest")


def test_a_pull_needs_the_right_password_and_sends_it_nowhere_else(
    runtime: DockerRuntime,
    engine_client: docker.DockerClient,
    registry: LocalRegistry,
    private_registry: LocalRegistry,
) -> None:
    ref = private_registry.reference("team/app")
    digest = push(engine_client, BUSYBOX, ref, private_registry.auth)
    engine_client.api.remove_image(ref)

    def attempt(password: str) -> str:
        credential = Credential(
            server=private_registry.address, username="alice", password=password
        )
        try:
            outputs = list(runtime.pull_image(ref, credential))
        except EngineError as problem:
            return str(problem)
        return next((output.error for output in outputs if output.error), "")

    assert attempt("wrong")
    with pytest.raises(NotFound):
        runtime.inspect_image(ref)
    assert attempt("s3cret") == ""
    found = runtime.inspect_image(ref)
    assert any(item.endswith(digest) for item in found.digests)
    engine_client.api.remove_image(ref)
    open_ref = registry.reference("team/app")
    push(engine_client, BUSYBOX, open_ref)
    engine_client.api.remove_image(open_ref)
    assert [o.error for o in runtime.pull_image(open_ref, None) if o.error] == []

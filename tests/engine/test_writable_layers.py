"""What a real container wrote outside its volumes: the engine's changes with their sizes."""

import time

import docker
import pytest
from docker.models.containers import Container

from agent import clock
from agent.errors import NotFound
from agent.protocol.writable_layer import SECONDS, WritableLayer
from agent.runtime.docker import DockerRuntime
from agent.runtime.docker_layers import _MOST_BYTES
from agent.sessions.layers import look_at
from tests.ground.engine import PrivateEngine
from tests.ground.images import BUSYBOX, RUN_UNTIL_STOPPED

MIB = 1024 * 1024


@pytest.fixture
def runtime(clean_engine: PrivateEngine) -> DockerRuntime:
    return DockerRuntime({"DOCKER_HOST": clean_engine.url})


@pytest.fixture
def container(engine_client: docker.DockerClient) -> Container:
    return engine_client.containers.run(
        BUSYBOX,
        RUN_UNTIL_STOPPED,
        detach=True,
        volumes={"kept": {"bind": "/home/dev/kept"}},
        tmpfs={"/scratch": ""},
    )


def run(container: Container, script: str) -> None:
    code, output = container.exec_run(["sh", "-c", script])
    assert code == 0, output


def look(runtime: DockerRuntime, container: Container) -> WritableLayer:
    state = runtime.container_run(str(container.id))
    return look_at(runtime, state, clock.monotonic() + SECONDS)


def test_a_fresh_container_holds_nothing_although_mounts_made_folders_in_it(
    runtime: DockerRuntime, container: Container
) -> None:
    assert look(runtime, container) == WritableLayer()


def test_files_outside_of_mounts_are_told_with_their_sizes_largest_first(
    runtime: DockerRuntime, container: Container
) -> None:
    run(container, "dd if=/dev/zero of=/home/dev/model.bin bs=1M count=5 2>/dev/null")
    run(container, "mkdir -p '/root/a folder' && echo hello > '/root/a folder/nöte \"1\".txt'")
    run(container, "echo kept > /home/dev/kept/data; echo gone > /scratch/file; rm /bin/whoami")
    held = look(runtime, container)
    assert [(path.path, path.size_bytes) for path in held.paths] == [
        ("/home/dev/model.bin", 5 * MIB),
        ('/root/a folder/nöte "1".txt', 6),
    ]
    assert (held.size_bytes, held.file_count, held.deleted_count) == (5 * MIB + 6, 2, 1)
    assert held.is_whole
    container.stop(timeout=0)
    assert look(runtime, container) == held


def test_of_thousands_of_files_two_hundred_are_looked_at_and_the_engine_tells_the_size(
    runtime: DockerRuntime, container: Container
) -> None:
    run(container, "mkdir -p /opt/x/y/z; for n in $(seq 3000); do echo $n > /opt/x/y/z/$n; done")
    run(container, "dd if=/dev/zero of=/mine bs=1M count=3 2>/dev/null")
    calls = runtime.calls
    began = time.monotonic()
    held = look(runtime, container)
    print("seconds", time.monotonic() - began)
    assert runtime.calls - calls <= 203
    assert not held.is_whole
    assert held.file_count == 3001
    assert held.size_bytes >= 3 * MIB
    assert (held.paths[0].path, held.paths[0].size_bytes) == ("/mine", 3 * MIB)
    assert len(held.paths) == 20
    container.stop(timeout=0)
    began = time.monotonic()
    assert look(runtime, container).paths[0].path == "/mine"
    print("seconds stopped", time.monotonic() - began)


def test_a_list_larger_than_the_agent_reads_is_cut_at_an_entry(
    runtime: DockerRuntime, container: Container, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.runtime.docker_layers._MOST_BYTES", 100_000)
    assert _MOST_BYTES > 100_000
    script = 'mkdir -p /opt/x; for n in $(seq 6000); do echo > "/opt/x/},{$n"; done'
    run(container, script)
    changes, is_whole = runtime.container_changes(str(container.id))
    assert not is_whole
    assert len(changes) > 1000
    assert not look(runtime, container).is_whole


def test_a_container_that_is_gone_is_not_found(
    runtime: DockerRuntime, container: Container
) -> None:
    container.remove(force=True)
    with pytest.raises(NotFound):
        runtime.container_changes(str(container.id))

"""Proof that the tests' own ground holds: engines, images, registries, several hosts."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import docker
import pytest
import requests

from tests.ground import hostnet
from tests.ground.engine import PrivateEngine
from tests.ground.fixtures_engine import EngineFactory
from tests.ground.hostnet import HIGHEST_NUMBER, HostNumber, sweep_leftovers
from tests.ground.images import (
    BUSYBOX,
    HTTPD,
    HTTPD_HEALTH_COMMAND,
    HTTPD_PAGE,
    RUN_UNTIL_STOPPED,
    ensure_images,
    push,
)
from tests.ground.registry import LocalRegistry
from tests.ground.wait import eventually


class TestEngine:
    def test_a_container_serves_its_page_on_the_hosts_address(
        self, clean_engine: PrivateEngine, engine_client: docker.DockerClient
    ) -> None:
        container = engine_client.containers.run(HTTPD, detach=True, ports={"80/tcp": 8080})
        page = eventually(lambda: fetch(f"http://{clean_engine.address}:8080/"))
        assert page == HTTPD_PAGE
        # The pause: the engine can lose what a command prints that ends at once.
        patient = ["sh", "-c", '"$@"; sleep 0.2', "sh", *HTTPD_HEALTH_COMMAND]
        assert container.exec_run(patient).output == HTTPD_PAGE.encode()

    def test_cleaning_removes_everything_but_images(self, clean_engine: PrivateEngine) -> None:
        with closing(clean_engine.client()) as client:
            client.networks.create("net")
            client.volumes.create("vol")
            running = client.containers.run(
                BUSYBOX, RUN_UNTIL_STOPPED, detach=True, network="net", volumes=["vol:/v"]
            )
            running.pause()
            clean_engine.clean()
            assert client.containers.list(all=True) == []
            assert client.volumes.list() == []
            assert [n.name for n in client.networks.list(names=["net"])] == []
            assert client.images.get(BUSYBOX)

    def test_cleaning_waits_for_containers_that_somebody_else_is_removing(
        self, clean_engine: PrivateEngine
    ) -> None:
        with closing(clean_engine.client()) as client:
            client.networks.create("net")
            for _ in range(8):
                client.containers.run(BUSYBOX, RUN_UNTIL_STOPPED, detach=True, network="net")
            with ThreadPoolExecutor(2) as pool:
                other = pool.submit(remove_containers, clean_engine)
                clean_engine.clean()
                other.result()
            assert client.containers.list(all=True) == []

    def test_a_killed_engine_comes_back_with_its_containers(
        self, engine_factory: EngineFactory
    ) -> None:
        host = engine_factory("--live-restore")
        with closing(host.client()) as client:
            container = client.containers.run(BUSYBOX, RUN_UNTIL_STOPPED, detach=True)
            container.reload()
            started = container.attrs["State"]["StartedAt"]
            host.kill9()
            assert not host.answers()
            host.start()
            container.reload()
            assert (container.status, container.attrs["State"]["StartedAt"]) == (
                "running",
                started,
            )

    def test_an_engine_starts_whoever_has_the_number_of_the_killed_one(
        self, engine_factory: EngineFactory
    ) -> None:
        host = engine_factory()
        host.kill9()
        for name in ("d.pid", "exec/containerd/containerd.pid"):
            (host.folder / name).write_text(str(os.getpid()))
        host.start()
        assert host.pid != os.getpid()

    def test_an_engine_that_a_test_kills_itself_is_waited_for(
        self, engine_factory: EngineFactory
    ) -> None:
        host = engine_factory()
        killed = host.pid
        os.kill(killed, signal.SIGKILL)
        host.start()
        assert host.pid != killed
        assert host.answers()

    def test_a_frozen_engine_does_not_answer_until_it_is_thawed(
        self, clean_engine: PrivateEngine
    ) -> None:
        clean_engine.freeze()
        assert not clean_engine.answers()
        clean_engine.thaw()
        assert clean_engine.answers()

    def test_hosts_are_apart_and_reach_each_other(self, engine_factory: EngineFactory) -> None:
        first, second = engine_factory(), engine_factory()
        with closing(first.client()) as one, closing(second.client()) as two:
            assert one.info()["ID"] != two.info()["ID"]
            assert (one.info()["Name"], two.info()["Name"]) == (first.hostname, second.hostname)
            one.containers.run(HTTPD, detach=True, ports={"80/tcp": 8080})
            assert two.containers.list(all=True) == []
            wget = ["timeout", "2", "wget", "-q", "-O", "-", f"http://{first.address}:8080/"]
            assert two.containers.run(BUSYBOX, wget, remove=True).decode() == HTTPD_PAGE
            first.cut()
            with pytest.raises(docker.errors.ContainerError):
                two.containers.run(BUSYBOX, wget, remove=True)
            first.join()
            assert two.containers.run(BUSYBOX, wget, remove=True).decode() == HTTPD_PAGE

    def test_a_destroyed_engine_leaves_no_trace(self, swept_machine: None) -> None:
        host = PrivateEngine().create()
        assert {trace.split()[0] for trace in host.traces()} > {"process", "mount", "rule"}
        with closing(host.client()) as client:
            client.api.import_image_from_data(b"\0" * 1024, repository="empty", tag="1")
        destroy_and_check(host)

    def test_what_an_engine_removes_leaves_room_for_one_that_is_just_beginning(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setattr(hostnet, "BASE", tmp_path / "hosts")
        host = HostNumber.take()
        assert host is not None
        host.folder.mkdir(parents=True)
        hostnet.remove_all_traces(host)
        host.claim.close()
        assert not host.folder.exists()
        # Another process may have found it a moment ago, and make its own folder in it now.
        assert (tmp_path / "hosts").is_dir()

    def test_an_engine_with_running_and_paused_containers_leaves_no_trace(
        self, engine_factory: EngineFactory
    ) -> None:
        host = engine_factory()
        with closing(host.client()) as client:
            client.networks.create("net")
            client.containers.run(HTTPD, detach=True, network="net", ports={"80/tcp": 8080})
            client.containers.run(BUSYBOX, RUN_UNTIL_STOPPED, detach=True).pause()
        destroy_and_check(host)

    def test_leftovers_of_a_killed_run_are_swept_and_live_hosts_are_not(
        self, clean_engine: PrivateEngine
    ) -> None:
        # A number from the top: the lowest free one is soon claimed by tests that run beside.
        dead = PrivateEngine(host=HostNumber.take(HIGHEST_NUMBER)).create()
        with closing(dead.client()) as client:
            ensure_images(client)
            client.containers.run(BUSYBOX, RUN_UNTIL_STOPPED, detach=True)
        # A killed test run loses its claim on the number and leaves everything else.
        dead.host.claim.close()
        sweep_leftovers()
        assert dead.traces() == []
        assert clean_engine.answers()
        dead.destroy()


class TestRegistry:
    def test_an_image_pushed_from_one_host_is_pulled_on_another(
        self, engine: PrivateEngine, engine_factory: EngineFactory, registry: LocalRegistry
    ) -> None:
        reference = registry.reference("team/app")
        with closing(engine.client()) as here, closing(engine_factory().client()) as there:
            digest = push(here, BUSYBOX, reference)
            assert digest.startswith("sha256:")
            pulled = there.images.pull(reference)
            assert pulled.attrs["RepoDigests"] == [f"{registry.address}/team/app@{digest}"]

    def test_a_registry_with_a_password_wants_it(
        self, engine_client: docker.DockerClient, private_registry: LocalRegistry
    ) -> None:
        reference = private_registry.reference("secret/app")
        with pytest.raises(docker.errors.APIError, match="no basic auth credentials"):
            push(engine_client, BUSYBOX, reference)
        push(engine_client, BUSYBOX, reference, private_registry.auth)
        engine_client.images.remove(reference)
        with pytest.raises(docker.errors.APIError, match="no basic auth credentials"):
            engine_client.images.pull(reference)
        wrong = {"username": private_registry.username, "password": "wrong"}
        with pytest.raises(docker.errors.APIError, match="unauthorized"):
            engine_client.images.pull(reference, auth_config=wrong)
        assert engine_client.images.pull(reference, auth_config=private_registry.auth)


def fetch(url: str) -> str:
    """Return the page, or nothing while nobody listens."""
    try:
        return requests.get(url, timeout=2).text
    except requests.ConnectionError:
        return ""


def destroy_and_check(host: PrivateEngine) -> None:
    """Destroy a host and assert that nothing on the machine bears its names any more."""
    host.destroy()
    assert host.traces() == []


def remove_containers(host: PrivateEngine) -> None:
    """Remove what there is, as the engine itself does with the containers of an ended build."""
    with closing(host.client()) as client:
        for container in client.api.containers(all=True, quiet=True):
            with suppress(docker.errors.APIError):
                client.api.remove_container(container["Id"], force=True)

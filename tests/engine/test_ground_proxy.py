"""Proof that the Docker API proxy holds: it counts, it streams, and its faults are as ordered."""

import threading
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import docker
import pytest
import requests

from tests.ground.faults import Call, Moment
from tests.ground.images import BUSYBOX, RUN_UNTIL_STOPPED, push
from tests.ground.proxy import DockerApiProxy
from tests.ground.registry import LocalRegistry
from tests.ground.wait import eventually

CREATE = "/containers/create"
GONE = (requests.ConnectionError, docker.errors.DockerException)


@pytest.fixture
def through_proxy(proxy: DockerApiProxy) -> Iterator[docker.DockerClient]:
    """A client that talks to the engine through the proxy and has not called anything yet."""
    client = docker.DockerClient(base_url=proxy.url, version="1.41", timeout=10)
    with closing(client):
        yield client


def names(client: docker.DockerClient) -> list[str]:
    """Return the names of all containers, from one call."""
    return [found["Names"][0] for found in client.api.containers(all=True)]


class TestProxyWithoutFaults:
    def test_calls_are_listed_with_their_template_and_whether_they_change_anything(
        self, proxy: DockerApiProxy, through_proxy: docker.DockerClient
    ) -> None:
        container = through_proxy.containers.create(BUSYBOX, RUN_UNTIL_STOPPED)
        container.start()
        through_proxy.images.get(BUSYBOX)
        container.remove(force=True)
        assert [(str(call), call.mutating, call.status) for call in proxy.calls] == [
            ("POST /containers/create", True, 201),
            ("GET /containers/{id}/json", False, 200),
            ("POST /containers/{id}/start", True, 204),
            ("GET /images/{id}/json", False, 200),
            ("DELETE /containers/{id}", True, 204),
        ]
        assert len(proxy.mutating_calls) == 3
        proxy.reset()
        assert proxy.calls == []

    def test_a_terminal_works_through_the_proxy(
        self, proxy: DockerApiProxy, through_proxy: docker.DockerClient
    ) -> None:
        container = through_proxy.containers.run(BUSYBOX, RUN_UNTIL_STOPPED, detach=True)
        api = through_proxy.api
        terminal = api.exec_create(container.id, "sh", tty=True, stdin=True)["Id"]
        reader: Any = api.exec_start(terminal, tty=True, socket=True)
        stream = reader._sock
        stream.settimeout(10)
        stream.sendall(b"echo $((6 * 7))\n")
        seen = b""
        while b"\r\n42\r\n" not in seen:
            seen += stream.recv(4096)
        api.exec_resize(terminal, 30, 100)
        stream.sendall(b"exit 3\n")
        while stream.recv(4096):
            pass
        stream.close()
        assert api.exec_inspect(terminal)["ExitCode"] == 3

    def test_output_logs_and_events_stream_through_the_proxy(
        self, proxy: DockerApiProxy, through_proxy: docker.DockerClient
    ) -> None:
        big = ["sh", "-c", "yes 0123456789 | head -n 20000"]
        # Following a container that ends can lose lines on this engine; its log never does.
        writer = through_proxy.containers.run(BUSYBOX, big, detach=True)
        writer.wait()
        assert len(writer.logs()) == 220_000
        container = through_proxy.containers.run(BUSYBOX, RUN_UNTIL_STOPPED, detach=True)
        # The same goes for a command that ends at once.
        patient = ["sh", "-c", f"{big[-1]}; sleep 1"]
        assert container.exec_run(patient).output == b"0123456789\n" * 20_000
        events = through_proxy.events(decode=True, filters={"event": "die"})
        container.remove(force=True)
        assert next(events)["id"] == container.id
        events.close()

    def test_a_build_runs_and_ends_when_its_caller_leaves(
        self,
        tmp_path_factory: pytest.TempPathFactory,
        engine_client: docker.DockerClient,
        through_proxy: docker.DockerClient,
    ) -> None:
        folder = tmp_path_factory.mktemp("context")
        (folder / "blob").write_bytes(b"x" * 3_000_000)
        dockerfile = folder / "Dockerfile"
        dockerfile.write_text(f"FROM {BUSYBOX}\nCOPY blob /blob\nRUN wc -c /blob\n")
        image, lines = through_proxy.images.build(path=str(folder), forcerm=True)
        assert "3000000 /blob" in str(list(lines))
        engine_client.images.remove(str(image.id))
        dockerfile.write_text(f"FROM {BUSYBOX}\nRUN echo begun; sleep 600\n")
        output = through_proxy.api.build(path=str(folder), forcerm=True, decode=True)
        eventually(lambda: "begun" in str(next(output)))
        # That was the line that names the step; what the step itself prints stays unread.
        eventually(lambda: len(engine_client.api.containers()) == 1, message="no step runs")
        output.close()
        eventually(lambda: names(engine_client) == [], message="the build's step still runs")

    def test_push_and_pull_pass_through_the_proxy(
        self, through_proxy: docker.DockerClient, private_registry: LocalRegistry
    ) -> None:
        reference = private_registry.reference("proxy/app")
        push(through_proxy, BUSYBOX, reference, private_registry.auth)
        through_proxy.images.remove(reference)
        assert through_proxy.images.pull(reference, auth_config=private_registry.auth)


class TestFaults:
    def test_an_error_is_answered_once_and_the_engine_never_sees_the_call(
        self,
        proxy: DockerApiProxy,
        through_proxy: docker.DockerClient,
        engine_client: docker.DockerClient,
    ) -> None:
        proxy.fail("POST", CREATE, status=409, message="the name is taken")
        with pytest.raises(docker.errors.APIError, match="the name is taken") as failure:
            through_proxy.containers.create(BUSYBOX)
        assert failure.value.status_code == 409
        assert names(engine_client) == []
        through_proxy.containers.create(BUSYBOX)
        assert len(names(engine_client)) == 1

    def test_a_cut_call_is_not_executed_and_a_dropped_reply_is(
        self,
        proxy: DockerApiProxy,
        through_proxy: docker.DockerClient,
        engine_client: docker.DockerClient,
    ) -> None:
        proxy.cut("POST", CREATE)
        with pytest.raises(requests.ConnectionError):
            through_proxy.api.create_container(BUSYBOX, name="cut")
        assert names(engine_client) == []
        proxy.drop_reply("POST", CREATE)
        with pytest.raises(requests.ConnectionError):
            through_proxy.api.create_container(BUSYBOX, name="dropped")
        assert names(engine_client) == ["/dropped"]

    def test_a_late_call_is_executed_although_its_caller_gave_up(
        self,
        proxy: DockerApiProxy,
        engine_client: docker.DockerClient,
    ) -> None:
        proxy.delay("POST", CREATE, seconds=1.5, times=1)
        impatient = docker.APIClient(base_url=proxy.url, version="1.41", timeout=1)
        with closing(impatient), pytest.raises(requests.Timeout):
            impatient.create_container(BUSYBOX, name="late")
        assert names(engine_client) == []
        eventually(lambda: names(engine_client) == ["/late"])

    def test_a_hanging_call_waits_until_the_proxy_is_reset(
        self, proxy: DockerApiProxy, through_proxy: docker.DockerClient
    ) -> None:
        proxy.hang("GET", "/info")
        outcome: list[object] = []

        def ask() -> None:
            try:
                outcome.append(through_proxy.info())
            except GONE as error:
                outcome.append(error)

        caller = threading.Thread(target=ask)
        started = time.monotonic()
        caller.start()
        eventually(lambda: proxy.calls)
        caller.join(0.3)
        assert outcome == []
        proxy.reset()
        caller.join(5)
        assert isinstance(outcome[0], requests.ConnectionError)
        assert time.monotonic() - started < 5
        assert through_proxy.ping()

    def test_a_stream_is_cut_after_so_many_bytes(
        self, proxy: DockerApiProxy, through_proxy: docker.DockerClient
    ) -> None:
        container = through_proxy.containers.run(
            BUSYBOX, ["sh", "-c", "yes | head -n 50000"], detach=True
        )
        container.wait()
        proxy.cut_stream("GET", "/containers/[^/]+/logs", after_bytes=1000)
        with pytest.raises(requests.exceptions.ChunkedEncodingError):
            container.logs()

    @pytest.mark.parametrize(
        ("moment", "made"),
        [
            (Moment.BEFORE_FORWARD, ["/one"]),
            (Moment.AFTER_EXECUTE, ["/one", "/two"]),
            (Moment.AFTER_REPLY, ["/one", "/two"]),
        ],
    )
    def test_a_kill_point_strikes_at_its_moment_of_the_nth_mutating_call(
        self,
        moment: Moment,
        made: list[str],
        proxy: DockerApiProxy,
        through_proxy: docker.DockerClient,
        engine_client: docker.DockerClient,
    ) -> None:
        seen: list[tuple[str, list[str]]] = []

        def strike(call: Call) -> None:
            seen.append((str(call), sorted(names(engine_client))))

        point = proxy.kill_point(2, moment, strike)
        through_proxy.api.create_container(BUSYBOX, name="one")
        through_proxy.api.containers(all=True)
        assert not point.reached
        if moment is Moment.AFTER_REPLY:
            through_proxy.api.create_container(BUSYBOX, name="two")
        else:
            with pytest.raises(requests.ConnectionError):
                through_proxy.api.create_container(BUSYBOX, name="two")
        eventually(lambda: seen)
        assert seen == [("POST /containers/create", made)]
        assert sorted(names(engine_client)) == made

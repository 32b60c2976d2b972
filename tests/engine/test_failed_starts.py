"""Containers that cannot be made or started on a real engine: what is told, and what is tried."""

import io
import tarfile

import docker

from tests.agent.documents import image
from tests.agent.fake_server import FakeServer
from tests.engine.agent_scene import Launch, busybox, running, sleeper, state_of
from tests.ground.proxy import DockerApiProxy
from tests.ground.wait import eventually


def empty_archive() -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w"):
        pass
    return stream.getvalue()


def told(server: FakeServer) -> tuple[str, int]:
    status = server.status("w-web")
    return (status.status, status.revision) if status else ("", 0)


def test_an_image_that_starts_no_program_says_what_to_set(
    server: FakeServer, launch: Launch, engine_client: docker.DockerClient
) -> None:
    engine_client.api.import_image_from_data(empty_archive(), repository="nothing", tag="1")
    server.desire(
        images=(image("nothing", ref="nothing:1"),),
        workspaces=(sleeper(image_ref="nothing:1", command=()),),
    )
    launch()
    eventually(lambda: server.status_word("w-web") == "error", 20)
    status = server.status("w-web")
    assert status is not None
    assert "Image nothing:1 starts no program by itself" in status.message
    rows = [event for event in server.events("w-web") if event.event == "error"]
    assert [row.cause for row in rows] == [status.message]


def test_a_start_refused_for_what_an_interrupted_one_left_is_no_end(
    server: FakeServer, launch: Launch, engine_client: docker.DockerClient, proxy: DockerApiProxy
) -> None:
    server.desire(images=(busybox(),), workspaces=(sleeper(),))
    launch(proxy.url)
    running(server)
    first, _ = state_of(engine_client)
    proxy.fail("POST", "/containers/[^/]+/start", 409, "id already in use")
    server.desire(images=(busybox(),), workspaces=(sleeper(env={"A": "2"}, revision=2),))
    # The second try waits for its turn, and then until the new container has run for a while.
    eventually(lambda: told(server) == ("running", 2), 45)
    second, state = state_of(engine_client)
    assert (second != first, state) == (True, "running")

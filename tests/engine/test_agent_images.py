"""Pulls and builds by the real agent: passwords, logs, cancel, images that go and come back."""

from contextlib import suppress
from pathlib import Path

import docker

from agent.protocol.spec import WorkspaceSpec
from agent.protocol.state import DesiredBuild, DesiredImage, RegistryCredential
from tests.agent.documents import image, tombstone
from tests.agent.fake_server import FakeServer
from tests.engine.agent_scene import START, Launch, busybox, running, sleeper, state_of
from tests.engine.snapshot_scene import images_with
from tests.ground.cutter import CuttingRelay
from tests.ground.images import BUSYBOX, push
from tests.ground.inside import file_in
from tests.ground.proxy import DockerApiProxy
from tests.ground.registry import LocalRegistry
from tests.ground.wait import eventually

BUILT = "trailer/i-app:latest"
CANARY = "canary-of-the-build-61c4"


def command_lines() -> list[str]:
    """Of every process, the engine's too: what `ps` shows to everybody on a machine."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found.append(path.read_text(errors="replace"))
    return found


def ended(server: FakeServer, build_id: str, status: str) -> None:
    def reached() -> bool:
        build = server.build(build_id)
        return build is not None and build.status == status

    eventually(reached, START, f"{build_id} is not {status}: {server.build(build_id)}")


def test_a_private_image_is_pulled_used_fetched_again_and_removed_by_order(
    server: FakeServer,
    launch: Launch,
    engine_client: docker.DockerClient,
    private_registry: LocalRegistry,
) -> None:
    ref = private_registry.reference("team/private")
    digest = push(engine_client, BUSYBOX, ref, private_registry.auth)
    engine_client.api.remove_image(ref)
    credential = RegistryCredential(
        server=private_registry.address, username="alice", password="s3cret"
    )
    wanted = image("app", ref=ref, credential=credential, done=False)
    web = sleeper(image_ref=ref, image_id=wanted.id)
    server.desire(images=(wanted,), workspaces=(web,))
    agent = launch()
    running(server)
    result = server.build("b-app")
    assert result is not None
    assert result.digest == digest
    assert result.size_bytes
    assert b"Pulling from team/private" in server.book.logs["b-app"]
    assert "s3cret" not in agent.log
    # Removed by hand together with its container: a workspace needs it, so it comes back.
    engine_client.api.remove_container(state_of(engine_client)[0], force=True)
    engine_client.api.remove_image(ref, force=True)
    done = image("app", ref=ref, credential=credential)
    server.desire(images=(done,), workspaces=(web,))
    eventually(lambda: state_of(engine_client)[1] == "running", START)
    orders = (
        tombstone("workspace", "w-web", "trailer-web"),
        tombstone("image", wanted.id, ref),
    )
    server.desire(tombstones=orders)
    eventually(lambda: all(server.tombstone(order.id) for order in orders), START)
    eventually(lambda: engine_client.api.images(ref) == [], START)


def test_a_wrong_password_is_told_and_the_running_container_stays(
    server: FakeServer,
    launch: Launch,
    engine_client: docker.DockerClient,
    private_registry: LocalRegistry,
) -> None:
    server.desire(images=(busybox(),), workspaces=(sleeper(),))
    launch()
    running(server)
    before = state_of(engine_client)
    ref = private_registry.reference("team/closed")
    push(engine_client, BUSYBOX, ref, private_registry.auth)
    engine_client.api.remove_image(ref)
    credential = RegistryCredential(
        server=private_registry.address, username="alice", password="guess"
    )
    closed = image("closed", ref=ref, credential=credential, done=False)
    edited = sleeper(image_ref=ref, image_id=closed.id, revision=2)
    server.desire(images=(busybox(), closed), workspaces=(edited,))
    ended(server, "b-closed", "failed")
    eventually(lambda: server.status_word("w-web") == "error", START)
    assert "Image closed could not be pulled" in str(server.status("w-web"))
    assert state_of(engine_client) == before


def test_a_build_streams_its_log_and_a_rebuild_replaces_the_workspace(
    server: FakeServer, launch: Launch, engine_client: docker.DockerClient
) -> None:
    first = image(
        "app",
        kind="build",
        ref=BUILT,
        done=False,
        dockerfile=f"FROM {BUSYBOX}\nRUN echo one > /word; echo said-one",
        credential=RegistryCredential(server="r.example.com", username="robot", password=CANARY),
    )
    web = sleeper(image_ref=BUILT, image_id=first.id, secret_env={"PASSWORD": CANARY})
    server.desire(images=(first,), workspaces=(web,))
    launch()
    running(server)
    log = server.book.logs["b-app"]
    assert b"said-one" in log
    assert CANARY.encode() not in log
    assert images_with(engine_client, CANARY) == []
    assert [line for line in command_lines() if CANARY in line] == []
    old = state_of(engine_client)[0]
    second = image(
        "app",
        kind="build",
        ref=BUILT,
        dockerfile=f"FROM {BUSYBOX}\nRUN echo two > /word",
        build=DesiredBuild(id="b-2", number=2),
    )
    server.desire(images=(second,), workspaces=(web,))
    ended(server, "b-2", "finished")
    assert state_of(engine_client)[0] == old
    result = server.build("b-2")
    assert result is not None
    known = sleeper(
        image_ref=BUILT,
        image_id=first.id,
        image_engine_id=result.engine_id,
        secret_env={"PASSWORD": CANARY},
    )
    assert isinstance(known.spec, WorkspaceSpec)
    server.desire(images=(image("app", kind="build", ref=BUILT),), workspaces=(known,))
    eventually(lambda: state_of(engine_client)[0] not in ("", old), START)
    eventually(lambda: [e.event for e in server.events("w-web")] == ["create", "replace"])
    new = engine_client.containers.get("trailer-web")
    assert file_in(new, "/word") == b"two\n"


def slow_build(*, cancel: bool) -> DesiredImage:
    return image(
        "slow",
        kind="build",
        ref="trailer/i-slow:latest",
        dockerfile=f"FROM {BUSYBOX}\nRUN echo begun; sleep 1000",
        build=DesiredBuild(id="b-slow", number=1, cancel=cancel),
    )


def test_a_cancelled_build_ends_on_the_engine(
    server: FakeServer, launch: Launch, engine_client: docker.DockerClient
) -> None:
    server.desire(images=(slow_build(cancel=False),))
    launch()
    eventually(lambda: b"begun" in server.book.logs.get("b-slow", b""), START)
    server.desire(images=(slow_build(cancel=True),))
    ended(server, "b-slow", "cancelled")
    eventually(lambda: engine_client.api.containers(all=True) == [], START)


def test_a_cancelled_build_ends_on_an_engine_that_does_not_notice_that_its_caller_left(
    server: FakeServer,
    launch: Launch,
    engine_client: docker.DockerClient,
    proxy: DockerApiProxy,
) -> None:
    """As behind a proxy that keeps the connection."""
    proxy.delay("POST", "/build", seconds=0)
    server.desire(images=(slow_build(cancel=False),))
    launch(proxy.url)
    eventually(lambda: len(engine_client.api.containers()) == 1, START, "no step runs")
    server.desire(images=(slow_build(cancel=True),))
    ended(server, "b-slow", "cancelled")
    assert engine_client.api.containers() == []


def test_a_cancelled_pull_ends_on_the_engine(
    server: FakeServer,
    launch: Launch,
    engine_client: docker.DockerClient,
    private_registry: LocalRegistry,
) -> None:
    work = engine_client.containers.create(
        BUSYBOX, ["dd", "if=/dev/urandom", "of=/big", "bs=1M", "count=4"]
    )
    work.start()
    work.wait()
    made = str(work.commit().id)
    work.remove()
    pushed = private_registry.reference("team/slow")
    push(engine_client, made, pushed, private_registry.auth)
    engine_client.api.remove_image(pushed)
    relay = CuttingRelay(private_registry.port).start()
    relay.slow_after = 1024 * 1024
    credential = RegistryCredential(server=relay.address, username="alice", password="s3cret")

    def slow(*, cancel: bool) -> object:
        build = DesiredBuild(id="b-slow", number=1, cancel=cancel)
        ref = f"{relay.address}/team/slow:1"
        return image("slow", ref=ref, credential=credential, build=build)

    try:
        server.desire(images=(slow(cancel=False),))
        launch()
        eventually(relay.crawls, START, f"no layer is fetched: {server.build('b-slow')}")
        server.desire(images=(slow(cancel=True),))
        eventually(lambda: not relay.crawls(), 5, "the engine goes on with the pull")
        eventually(lambda: (b := server.build("b-slow")) and b.status == "cancelled", 5)
        assert engine_client.api.images(f"{relay.address}/team/slow") == []
    finally:
        relay.stop()


def test_a_crash_looping_workspace_says_so_with_its_last_words(
    server: FakeServer, launch: Launch, engine_client: docker.DockerClient
) -> None:
    crasher = sleeper(command=("sh", "-c", "echo out of cheese; exit 3"))
    server.desire(images=(busybox(),), workspaces=(crasher, sleeper("calm")))
    launch()
    running(server, "w-calm")

    def confesses() -> bool:
        status = server.status("w-web")
        return (
            status is not None
            and status.status == "error"
            and "with code 3" in status.message
            and "out of cheese" in status.message
        )

    eventually(confesses, START, f"{server.status('w-web')}")

"""Images as a user meets them: builds with a live log, registries, updates, snapshots."""

from __future__ import annotations

import time
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.scenario import User
from tests.engine.snapshot_scene import images_with
from tests.ground.images import BUSYBOX, HTTPD, push, root_filesystem
from tests.ground.inside import file_in
from tests.ground.wait import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    import docker

    from tests.ground.registry import LocalRegistry
    from tests.ground.server import RunningTrailer

# Says a line, and goes on when the test lets it: no test waits for a fixed time.
SLOW = f"""FROM {BUSYBOX}
RUN echo first-line; sleep 1; echo second-line; sleep 1; echo third-line
"""
ENDLESS = f"FROM {BUSYBOX}\nRUN echo begun; sleep 1000\n"


@pytest.fixture
def user(running_trailer: RunningTrailer, engine_client: docker.DockerClient) -> Iterator[User]:
    yield User(running_trailer)
    for found in engine_client.api.images(filters={"label": "trailer.managed=true"}):
        for container in engine_client.api.containers(all=True, filters={"ancestor": found["Id"]}):
            engine_client.api.remove_container(container["Id"], force=True)
        engine_client.api.remove_image(found["Id"], force=True)


def test_a_build_is_read_while_it_runs_and_without_a_gap(user: User) -> None:
    image = user.built_image("live", SLOW)
    text, offset = "", 0
    seen_early = False
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        piece, offset, complete = user.build_log(image, offset)
        text += piece
        lines = text.splitlines()
        seen_early = seen_early or ("first-line" in lines and "third-line" not in lines)
        if complete:
            break
        time.sleep(0.1)
    assert seen_early, f"no line before the end: {text}"
    wanted = ["first-line", "second-line", "third-line"]
    assert [line for line in text.splitlines() if line in wanted] == wanted
    finished = user.wait_for_image(image, "finished")
    assert finished["size_bytes"] > 0
    assert user.build_log(image)[0] == text


def test_a_log_is_read_on_over_a_restart_of_the_server_without_a_gap(
    user: User, running_trailer: RunningTrailer
) -> None:
    """The agent goes with it, and the next one runs the build again: its output follows."""
    image = user.built_image("restarted", SLOW.replace("\nRUN", "\nENV WHICH=restarted\nRUN"))
    text, offset = "", 0

    def read(word: str) -> bool:
        nonlocal text, offset
        piece, offset, complete = user.build_log(image, offset)
        text += piece
        return complete if word == "the end" else word in text.splitlines()

    eventually(lambda: read("first-line"), 30, "it never began")
    running_trailer.restart()
    eventually(lambda: read("the end"), 60, "the log has no end")
    user.wait_for_image(image, "finished")
    assert user.build_log(image)[0] == text, "what was read in pieces is not the log"
    wanted = ["first-line", "second-line", "third-line"]
    before, _, again = text.rpartition("Step 1/")
    seen = [line for line in before.splitlines() if line in wanted]
    assert seen == wanted[: len(seen)] != wanted, text
    assert [line for line in again.splitlines() if line in wanted] == wanted, text


def test_a_build_reads_its_secret_and_nothing_else_shows_it(
    user: User, engine_client: docker.DockerClient
) -> None:
    canary = "canary-build-0b7d"
    dockerfile = f"FROM {BUSYBOX}\nRUN --mount=type=secret,id=token sha256sum /run/secrets/token\n"
    image = user.built_image("quiet", dockerfile, build_secrets={"token": canary})
    user.wait_for_image(image, "finished")
    assert sha256(canary.encode()).hexdigest() in user.build_log(image)[0]
    changed = user.patch(f"/images/{image['id']}/", {"build_secrets": {"token": f"{canary}-2"}})
    made = user.wait_for_image(image, "finished")
    log = user.build_log(image)[0]
    assert sha256(f"{canary}-2".encode()).hexdigest() in log
    held = engine_client.images.get(made["engine_id"])
    told = [log, repr(changed), repr(made), repr(held.attrs), repr(held.history())]
    assert [canary in text for text in told] == [False] * 5


def test_a_cancel_ends_the_engines_work_and_a_fixed_build_succeeds(
    user: User, engine_client: docker.DockerClient
) -> None:
    before = {found["Id"] for found in engine_client.api.images(all=True)}
    image = user.built_image("mine", ENDLESS)
    eventually(lambda: "begun" in user.build_log(image)[0].splitlines(), 30, "it never began")
    asked = time.monotonic()
    user.post(f"/images/{image['id']}/cancel/")
    cancelled = user.wait_for_image(image, "cancelled", timeout=5)
    eventually(lambda: engine_client.api.containers(all=True) == [], 5, "something is left")
    assert time.monotonic() - asked < 5
    assert "ancelled" in cancelled["message"]
    assert {found["Id"] for found in engine_client.api.images(all=True)} == before

    user.patch(f"/images/{image['id']}/", {"dockerfile": f"FROM {BUSYBOX}\nRUN exit 3\n"})
    failed = user.wait_for_image(image, "failed")
    assert "returned a non-zero code: 3" in failed["message"]
    user.patch(f"/images/{image['id']}/", {"dockerfile": f"FROM {BUSYBOX}\nRUN echo ok\n"})
    user.wait_for_image(image, "finished")
    user.post(f"/images/{image['id']}/build/")
    user.wait_for_image(image, "finished")
    history = user.get(f"/images/{image['id']}/builds/")["results"]
    statuses = [row["status"] for row in history]
    assert statuses == ["finished", "finished", "failed", "cancelled"]
    assert all(row["duration_s"] is not None for row in history)


def try_credential(user: User, registry: Any, status: str) -> Any:
    """The credential as it reads once a host has tried it."""
    user.post(f"/registries/{registry['id']}/test/")

    def over() -> Any:
        seen = user.get(f"/registries/{registry['id']}/")
        assert seen["status"] == status, seen
        return seen

    return eventually(over, 30, "nobody has tried it")


def test_a_private_registry_gives_and_takes_with_the_right_password_only(
    user: User, engine_client: docker.DockerClient, private_registry: LocalRegistry
) -> None:
    reference = private_registry.reference("team/e2e")
    push(engine_client, BUSYBOX, reference, private_registry.auth)
    engine_client.api.remove_image(reference)
    registry = user.registry(private_registry.address, "alice", "guess")
    image = user.pulled_image("private", reference, registry=registry["id"])
    failed = user.wait_for_image(image, "failed")
    assert "unauthorized" in failed["message"] or "auth" in failed["message"]
    assert "guess" not in user.build_log(image)[0]
    refused = f"The registry {private_registry.address} refused this username and password."
    assert refused in try_credential(user, registry, "failed")["message"]
    # What failed with the old password is pulled without further ado.
    user.patch(f"/registries/{registry['id']}/", {"password": private_registry.password})
    finished = user.wait_for_image(image, "finished")
    assert "signed in" in try_credential(user, registry, "accepted")["message"]
    # None of the ports that simulated hosts forward: another test's registry may be there.
    away = user.registry("127.0.0.1:1", "alice", "guess")
    assert "could not be asked" in try_credential(user, away, "failed")["message"]
    assert finished["digest"]
    workspace = user.running("from-private", image=image["id"])

    target = private_registry.reference("team/pushed")
    built = user.built_image(
        "pushed",
        f"FROM {BUSYBOX}\nRUN echo shipped > /word\n",
        reference=target,
        registry=registry["id"],
        push=True,
    )
    user.wait_for_image(built, "finished")
    assert engine_client.api.images(target) == []
    engine_client.images.pull(target, auth_config=private_registry.auth)
    assert engine_client.containers.run(target, ["cat", "/word"], remove=True) == b"shipped\n"
    engine_client.api.remove_image(target)
    user.delete(f"/workspaces/{workspace['id']}/")
    eventually(lambda: engine_client.api.containers(all=True) == [], 20, "it stays")
    engine_client.api.remove_image(reference)


def push_new(client: docker.DockerClient, reference: str) -> str:
    """An image that is in the registry and nowhere else."""
    repository, _, tag = reference.rpartition(":")
    changes = ["ENV PATH=/bin", "ENV WHICH=first"]
    client.api.import_image_from_data(
        root_filesystem(), repository=repository, tag=tag, changes=changes
    )
    digest = push(client, reference, reference)
    client.api.remove_image(reference)
    return digest


def test_a_moved_tag_replaces_the_workspace_after_the_download(
    user: User, engine_client: docker.DockerClient, registry: LocalRegistry
) -> None:
    reference = registry.reference("team/moving-e2e")
    first = push_new(engine_client, reference)
    image = user.pulled_image("moving", reference, update_policy="always")
    user.wait_for_image(image, "finished")
    workspace = user.running("follower", image=image["id"])
    old = workspace["container_id"]
    held = user.get(f"/images/{image['id']}/")["engine_id"]
    second = push(engine_client, HTTPD, registry.reference("team/moving-e2e", "2"))
    assert second != first
    registry.move_tag("team/moving-e2e", second)
    user.post(f"/images/{image['id']}/check/")

    def replaced() -> bool:
        seen = user.get(f"/workspaces/{workspace['id']}/")
        assert seen["status"] != "error", seen["message"]
        return bool(seen["status"] == "running" and seen["container_id"] != old)

    eventually(replaced, 60, "the workspace was not replaced")
    seen = user.get(f"/images/{image['id']}/")
    assert second in seen["digest"]
    assert seen["available_digest"] in seen["digest"] or seen["digest"] in seen["available_digest"]
    events = dict(reversed(user.causes(workspace)))
    assert "image" in events["replace"]
    builds = user.get(f"/images/{image['id']}/builds/")["results"]
    assert [row["trigger"] for row in builds] == ["update", "created"]

    def step() -> Any:
        cycles = user.get(f"/hosts/{image['host']}/cycles/")["results"]
        steps = [step for cycle in cycles for step in cycle["steps"]]
        return next((one for one in steps if one["step"] == "remove_superseded"), None)

    done = eventually(step, 20, "what it replaced stays")
    assert (done["name"], done["outcome"]) == ("moving", "ok")
    assert "superseded by a newer pull; at most" in done["cause"]
    assert held not in {found["Id"] for found in engine_client.api.images(all=True)}
    user.delete(f"/workspaces/{workspace['id']}/")
    eventually(lambda: engine_client.api.containers(all=True) == [], 20, "it stays")
    engine_client.api.remove_image(reference)
    engine_client.api.remove_image(registry.reference("team/moving-e2e", "2"))


def test_a_snapshot_becomes_an_image_that_is_started_restored_and_cloned(
    user: User, engine_client: docker.DockerClient
) -> None:
    workspace = user.running("origin", secret_env={"TOKEN": "hunter2-secret"})
    container = engine_client.containers.get("trailer-origin")
    container.exec_run(["sh", "-c", "echo kept > /word"])
    answer = user.post(f"/workspaces/{workspace['id']}/snapshot/", {"name": "frozen"})
    image = user.get(f"/images/{answer['snapshot']}/")
    finished = user.wait_for_image(image, "finished")
    assert finished["kind"] == "snapshot"
    assert finished["source_workspace"] == workspace["id"]
    assert finished["engine_id"] == engine_client.images.get(finished["engine_id"]).id
    seen = user.wait_for(workspace, "running")
    assert seen["container_id"] == container.id
    copy = user.running("copy", image=image["id"])
    started = engine_client.containers.get("trailer-copy")
    assert file_in(started, "/word") == b"kept\n"
    assert started.labels["trailer.workspace"] == copy["id"]
    assert images_with(engine_client, "hunter2-secret") == []
    assert [event for event, _ in user.causes(workspace) if event in {"heal", "replace"}] == []
    text, _, complete = user.build_log(image)
    assert complete
    assert "Committing container" in text

    container.exec_run(["sh", "-c", "echo spoiled > /word"])
    user.patch(f"/workspaces/{workspace['id']}/", {"image": image["id"]})
    user.wait_for(workspace, "running")
    restored = engine_client.containers.get("trailer-origin")
    assert restored.id != container.id
    assert file_in(restored, "/word") == b"kept\n"
    twin = user.post(f"/workspaces/{workspace['id']}/clone/", {"name": "twin"})
    user.wait_for(twin, "running")
    cloned = engine_client.containers.get("trailer-twin")
    assert file_in(cloned, "/word") == b"kept\n"
    assert cloned.labels["trailer.workspace"] == twin["id"]
    # The agent would heal what is taken from under its workspaces.
    for made in (workspace, copy, twin):
        user.delete(f"/workspaces/{made['id']}/")
    eventually(lambda: engine_client.api.containers(all=True) == [], 20, "it stays")

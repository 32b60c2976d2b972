"""Stacks with a real git server and a real engine: from a commit to an answer on the network."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import docker
import pytest

from tests.e2e.stack_scene import Site, client, file_of, web
from tests.ground.images import BUSYBOX, ensure_images
from tests.ground.poller import poller_command
from tests.ground.server import RunningTrailer
from tests.ground.wait import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.ground.engine import PrivateEngine
    from tests.ground.gitserver import GitServer


@pytest.fixture(scope="module")
def site(engine: PrivateEngine, git_server: GitServer) -> Iterator[Site]:
    connected = docker.DockerClient(base_url=engine.url)
    ensure_images(connected)
    trailer = RunningTrailer(
        engine.url,
        env={
            "TRAILER_GIT_ALLOW": git_server.allow,
            "TRAILER_STACK_RETRY_SECONDS": "0.2,0.2,0.2",
            "TRAILER_PULL_RETRY_SECONDS": "600",
        },
    )
    try:
        yield Site(trailer.start(), git_server, connected)
    finally:
        trailer.destroy()
        for found in connected.containers.list(all=True, ignore_removed=True):
            found.remove(force=True)
        connected.networks.prune()
        connected.close()


def test_from_a_commit_to_an_answer_and_back(site: Site) -> None:
    repository = site.git.repository("shop")
    first = repository.commit(file_of(web=web("one"), client=client()))
    stack = site.stack(repository)
    seen = site.arrived(stack, "synced", commit=first)
    assert [(row["name"], row["status"]) for row in seen["services"]] == [
        ("client", "running"),
        ("web", "running"),
    ]
    assert site.said(stack) == "one"
    labels = site.container(stack, "web").labels
    assert (labels["trailer.stack"], labels["trailer.service"]) == (stack["id"], "web")

    second = repository.commit(file_of(web=web("two"), client=client()))
    answer = site.webhook(stack)
    assert answer.status_code == 202
    site.arrived(stack, "synced", commit=second)
    assert site.said(stack) == "two"
    sync = site.user.get(answer.json()["url"].partition("/api/v1")[2])
    assert (sync["outcome"], sync["trigger"], sync["author"]) == (
        "deployed",
        "webhook",
        "Ada Example",
    )
    assert sync["diff"] == ["service web: command changed", "service web: environment changed"]

    before = {name: site.container(stack, name).id for name in ("web", "client")}
    cycles = site.user.get(f"/hosts/{stack['host']}/cycles/")["count"]
    site.git.requests.clear()
    begun = time.time()
    site.user.post(f"/stacks/{stack['id']}/sync/")
    site.arrived(stack, "synced", commit=second)
    # One ls-remote: what the server has, and which branch is where. A fetch is two more requests.
    assert site.git.requests == [
        "GET /shop.git/info/refs?service=git-upload-pack",
        "POST /shop.git/git-upload-pack",
    ]
    assert _written(site, since=begun) == []
    assert {name: site.container(stack, name).id for name in before} == before
    assert site.user.get(f"/hosts/{stack['host']}/cycles/")["count"] == cycles

    site.user.post(f"/stacks/{stack['id']}/rollback/", {})
    site.arrived(stack, "out_of_sync", commit=first)
    assert site.said(stack) == "one"
    site.user.post(f"/stacks/{stack['id']}/deploy/")
    site.arrived(stack, "synced", commit=second)
    site.remove(stack)


def test_whatever_a_commit_breaks_the_old_services_stay_up(site: Site) -> None:
    repository = site.git.repository("sturdy")
    good = repository.commit(file_of(web=web("good"), client=client()))
    stack = site.stack(repository)
    site.arrived(stack, "synced", commit=good)
    before = {name: site.container(stack, name).id for name in ("web", "client")}
    unhealthy = {"test": ["CMD", "false"], "interval": "0.2s", "retries": 2}
    broken: list[tuple[dict[str, Any], str]] = [
        (web("bad", privileged=True), "privileged"),
        (web("bad", environment={"A": "${config.NOWHERE}"}), "NOWHERE"),
        (web("bad", image="trailer-test/nowhere:1"), "trailer-test/nowhere:1"),
        (web("bad", healthcheck=unhealthy), "Service web"),
    ]
    for service, word in broken:
        repository.commit(file_of(web=service, client=client()))
        assert site.webhook(stack).status_code == 202
        seen = site.arrived(stack, "failed", commit=good)
        assert word in seen["message"]
        assert site.said(stack) == "good"
        now = {name: site.container(stack, name).id for name in before}
        assert now == before, word
    eventually(
        lambda: site.names(stack) == ["trailer-sturdy-client", "trailer-sturdy-web"],
        20,
        "something is left over",
    )
    fixed = repository.commit(file_of(web=web("fixed"), client=client()))
    site.user.patch(f"/stacks/{stack['id']}/", {"poll_interval": 1})
    site.arrived(stack, "synced", commit=fixed)
    assert site.said(stack) == "fixed"
    site.remove(stack)


def test_a_hundred_requests_a_second_see_no_replace(site: Site) -> None:
    repository = site.git.repository("busy")
    stack = site.stack(repository, path="deploy")
    commit = repository.commit(_in_folder(web("0")))
    site.user.post(f"/stacks/{stack['id']}/deploy/")
    site.arrived(stack, "synced", commit=commit)
    poller = site.engine.containers.run(
        BUSYBOX, poller_command(visitors=6), network="trailer-busy", detach=True, init=True
    )
    try:
        eventually(lambda: poller.logs().count(b"ok") > 5, 20, "the page was never served")
        begun, before = time.monotonic(), poller.logs().count(b"ok")
        eventually(lambda: poller.logs().count(b"ok") >= before + 100, 20, "too little was asked")
        able = 100 / (time.monotonic() - begun)
        begun, before = time.monotonic(), poller.logs().count(b"\n")
        commit = repository.commit(_in_folder(web("1")))
        site.webhook(stack)
        site.arrived(stack, "synced", commit=commit)
        seconds = time.monotonic() - begun
        answers = poller.logs().decode().splitlines()
        rate = (len(answers) - before) / seconds
        print(f"{rate:.0f} requests a second for {seconds:.1f} s; {able:.0f} before")
        assert [line for line in answers if line != "ok"] == []
        # A machine that is busy with other things sends fewer, but never just a few.
        assert rate >= min(100, able / 3), (rate, able)
        assert len(answers) - before >= 100
    finally:
        poller.remove(force=True)
    site.remove(stack)


def _in_folder(service: dict[str, Any]) -> dict[str, str]:
    return {f"deploy/{name}": text for name, text in file_of(web=service).items()}


def test_a_push_during_a_sync_is_deployed_after_it(site: Site) -> None:
    repository = site.git.repository("hasty")
    stack = site.stack(repository)
    site.arrived(stack, "failed")
    repository.commit(file_of(web=web("one"), client=client()))
    site.git.go.clear()
    try:
        site.webhook(stack)
        eventually(
            lambda: site.seen(stack)["last_sync"]["phase"] == "fetching", 20, "it never began"
        )
        waiting = site.webhook(stack).json()["sync"]
        assert site.webhook(stack).json()["sync"] == waiting
    finally:
        site.git.go.set()
    last = repository.commit(file_of(web=web("two"), client=client()))
    site.arrived(stack, "synced", commit=last)
    assert site.said(stack) == "two"
    site.remove(stack)


def test_a_server_killed_in_the_middle_of_a_sync_goes_on_where_it_was(site: Site) -> None:
    repository = site.git.repository("tough")
    first = repository.commit(file_of(web=web("one"), client=client()))
    stack = site.stack(repository)
    site.arrived(stack, "synced", commit=first)
    commit = repository.commit(file_of(web=web("two"), client=client()))
    site.webhook(stack)
    eventually(lambda: _phase(site, stack) == "services", 20, "it never came so far")
    site.trailer.kill()
    site.trailer.start()
    site.arrived(stack, "synced", commit=commit, timeout=150)
    assert site.said(stack) == "two"
    assert site.names(stack) == ["trailer-tough-client", "trailer-tough-web"]
    assert site.user.replaces(_service(site, stack, "web")) == 1
    site.remove(stack)


def _written(site: Site, *, since: float) -> list[tuple[str, str]]:
    """What changed on the engine, by its own account; health checks are its own doing."""
    told = site.engine.events(since=int(since), until=int(time.time()) + 1, decode=True)
    return [
        (row["Type"], row["Action"])
        for row in told
        if row["timeNano"] >= since * 1e9
        and not str(row["Action"]).startswith(("exec_", "health_status", "top"))
    ]


def _phase(site: Site, stack: dict[str, Any]) -> str:
    return str(site.seen(stack)["last_sync"]["phase"])


def _service(site: Site, stack: dict[str, Any], name: str) -> str:
    found = [row for row in site.seen(stack)["services"] if row["name"] == name]
    return str(found[0]["workspace"])

"""Stacks with real needs, folders, registries, and with agent and engine killed under them."""

from __future__ import annotations

import os
import signal
import time
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from tests.e2e.stack_scene import Site, client, file_of, web
from tests.ground.compose_images import ensure_postgres
from tests.ground.faults import KillPoint, Moment
from tests.ground.images import BUSYBOX, HTTPD, push
from tests.ground.proxy import DockerApiProxy
from tests.ground.server import RunningTrailer
from tests.ground.valkey_image import DEAF_VALKEY, VALKEY, ensure_valkey
from tests.ground.wait import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.ground.engine import PrivateEngine
    from tests.ground.gitserver import GitServer
    from tests.ground.registry import LocalRegistry

CREATE, RENAME = "POST /containers/create", "POST /containers/{id}/rename"


@pytest.fixture(scope="module")
def proxy(engine: PrivateEngine) -> Iterator[DockerApiProxy]:
    running = DockerApiProxy(engine.socket, engine.folder / "stacks.sock").start()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def site(engine: PrivateEngine, proxy: DockerApiProxy, git_server: GitServer) -> Iterator[Site]:
    with closing(engine.client()) as connected:
        ensure_valkey(connected)
        trailer = RunningTrailer(
            proxy.url,
            env={
                "TRAILER_GIT_ALLOW": git_server.allow,
                "TRAILER_STACK_RETRY_SECONDS": "0.2,0.2,0.2",
            },
        )
        try:
            yield Site(trailer.start(), git_server, connected)
        finally:
            trailer.destroy()
            if not engine.answers():
                engine.start()
            engine.clean()


# --- needs ---


def app(said: str, **more: str) -> dict[str, Any]:
    """Counts its starts in the need, at the first try or not at all."""
    counts = 'valkey-cli -u "$$URL" --no-auth-warning INCR starts || exit 1; '
    stays = "trap 'exit 0' TERM; while :; do sleep 3600 & wait; done"
    return {
        "image": VALKEY,
        "command": ["sh", "-c", (counts if more else "") + stays],
        "environment": {"SAID": said, **more},
        "x-trailer": {"update_policy": "if_missing", "drain_timeout": "1s"},
    }


URL = {"URL": "${needs.valkey.url}", "AT": "${needs.valkey.host}:${needs.valkey.port}"}


def starts(site: Site, stack: dict[str, Any]) -> str:
    """What the need holds, asked from the service with what the service was given."""

    def answer() -> str:
        asked = site.container(stack, "app").exec_run(
            ["sh", "-c", 'valkey-cli -u "$URL" --no-auth-warning GET starts']
        )
        said = str(asked.output.decode().strip())
        assert said.isdigit(), said
        return said

    return str(eventually(answer, 20, "the need does not answer"))


def environment(site: Site, stack: dict[str, Any]) -> dict[str, str]:
    pairs = site.container(stack, "app").attrs["Config"]["Env"]
    return dict(pair.split("=", 1) for pair in pairs)


def healthy_then_made(site: Site, stack: dict[str, Any]) -> list[str]:
    """The engine's own account of who came when."""
    wanted = {
        (f"trailer-{stack['name']}-valkey", "health_status: healthy"),
        (f"trailer-{stack['name']}-app", "create"),
    }
    told = site.engine.events(
        since=0,
        until=int(time.time()) + 1,
        decode=True,
        filters={"type": "container", "label": f"trailer.stack={stack['id']}"},
    )
    seen = [(row["Actor"]["Attributes"]["name"], row["Action"]) for row in told]
    return [name.rpartition("-")[2] for name, action in seen if (name, action) in wanted]


def test_a_need_is_healthy_before_its_service_is_made_and_keeps_data_and_password(
    site: Site,
) -> None:
    repository = site.git.repository("fed")
    needs = {"valkey": None}
    first = repository.commit(file_of(needs=needs, app=app("one", **URL)))
    stack = site.stack(repository)
    seen = site.arrived(stack, "synced", commit=first)
    assert [(row["name"], row["status"]) for row in seen["needs"]] == [("valkey", "running")]
    assert healthy_then_made(site, stack)[:2] == ["valkey", "app"]
    assert starts(site, stack) == "1"
    given, server = environment(site, stack), site.container(stack, "valkey").id
    assert given["AT"] == "valkey:6379"

    second = repository.commit(file_of(needs=needs, app=app("two", **URL)))
    site.webhook(stack)
    site.arrived(stack, "synced", commit=second)
    assert starts(site, stack) == "2"
    assert environment(site, stack) == given | {"SAID": "two"}
    assert site.container(stack, "valkey").id == server

    without = repository.commit(file_of(app=app("three")))
    site.webhook(stack)
    assert site.arrived(stack, "synced", commit=without)["needs"] == []
    eventually(lambda: site.names(stack) == ["trailer-fed-app"], 20, "the need is still there")
    assert site.engine.volumes.get("trailer-fed-needs-valkey")

    again = repository.commit(file_of(needs=needs, app=app("four", **URL)))
    site.webhook(stack)
    site.arrived(stack, "synced", commit=again)
    assert starts(site, stack) == "3"
    assert environment(site, stack) == given | {"SAID": "four"}

    before = site.container(stack, "app").id
    deaf = {"valkey": {"image": DEAF_VALKEY, "ready_timeout": "3s"}}
    repository.commit(file_of(needs=deaf, app=app("five", **URL)))
    site.webhook(stack)
    told = site.arrived(stack, "failed", commit=again)["message"]
    assert told.startswith("Need valkey")
    assert "\n" not in told
    assert site.container(stack, "app").id == before
    assert starts(site, stack) == "3"
    secret = given["URL"].partition("@")[0].rpartition(":")[2]
    assert len(secret) == 48
    assert secret not in str(site.user.get(f"/stacks/{stack['id']}/syncs/")) + str(seen)
    site.remove(stack)


def test_a_database_opens_with_what_its_service_was_given(site: Site) -> None:
    ensure_postgres(site.engine)
    repository = site.git.repository("base")
    service = app("one") | {"environment": {"URL": "${needs.postgres.url}"}}
    first = repository.commit(file_of(needs={"postgres": {"database": "shop"}}, app=service))
    stack = site.stack(repository)
    seen = site.arrived(stack, "synced", commit=first)
    assert [(row["name"], row["status"]) for row in seen["needs"]] == [("postgres", "running")]
    # The pause: the engine can lose what a command prints that ends at once.
    script = 'psql "$0" -Atc "SELECT current_database()" && sleep 0.2'
    asked = site.container(stack, "postgres").exec_run(
        ["sh", "-c", script, environment(site, stack)["URL"]]
    )
    assert (asked.exit_code, asked.output) == (0, b"shop\n")
    assert site.engine.volumes.get("trailer-base-needs-postgres")
    site.remove(stack)


# --- killed in the middle ---


def begun(site: Site, name: str) -> tuple[Any, dict[str, Any]]:
    repository = site.git.repository(name)
    first = repository.commit(file_of(web=web("one"), client=client()))
    stack = site.stack(repository)
    site.arrived(stack, "synced", commit=first)
    return repository, stack


def deployed_once_each(site: Site, stack: dict[str, Any], commits: int) -> None:
    """One container per service, one sync and one replace per commit after the first."""
    prefix = f"trailer-{stack['name']}"
    eventually(
        lambda: site.names(stack) == [f"{prefix}-client", f"{prefix}-web"],
        20,
        "something is left over",
    )
    syncs = site.user.get(f"/stacks/{stack['id']}/syncs/")["results"]
    assert [row["outcome"] for row in syncs if row["outcome"] != "unchanged"] == ["deployed"] * (
        commits + 1
    )
    (served,) = (row for row in site.seen(stack)["services"] if row["name"] == "web")
    assert site.user.replaces(served["workspace"]) == commits


def reached(point: KillPoint) -> None:
    eventually(lambda: point.reached, 30, f"{point.only} never came")


def kill_agent(site: Site) -> None:
    children = psutil.Process(site.trailer.pid).children()
    (agent,) = (child for child in children if "agent" in child.cmdline())
    agent.send_signal(signal.SIGKILL)


def test_an_agent_killed_in_the_middle_of_a_sync_deploys_once(
    site: Site, proxy: DockerApiProxy
) -> None:
    repository, stack = begun(site, "brave")
    for said, call in (("made", CREATE), ("named", RENAME)):
        commit = repository.commit(file_of(web=web(said), client=client()))
        point = proxy.kill_point(1, Moment.AFTER_EXECUTE, lambda _: kill_agent(site), only=call)
        site.webhook(stack)
        reached(point)
        site.arrived(stack, "synced", commit=commit)
        assert site.said(stack) == said
    deployed_once_each(site, stack, 2)
    site.remove(stack)


def test_an_engine_killed_in_the_middle_of_a_sync_deploys_once(
    site: Site, proxy: DockerApiProxy, engine: PrivateEngine
) -> None:
    repository, stack = begun(site, "solid")
    commit = repository.commit(file_of(web=web("two"), client=client()))
    point = proxy.kill_point(
        1, Moment.AFTER_EXECUTE, lambda _: os.kill(engine.pid, signal.SIGKILL), only=CREATE
    )
    site.webhook(stack)
    reached(point)
    eventually(lambda: not engine.answers(), 10, "the engine still answers")
    site.engine.api.close()
    engine.start()
    site.arrived(stack, "synced", commit=commit, timeout=90)
    assert site.said(stack) == "two"
    deployed_once_each(site, stack, 1)
    site.remove(stack)


# --- folders and registries ---


def test_a_stack_follows_a_folder_of_the_server(site: Site) -> None:
    repository = site.git.repository("plain")
    first = repository.commit(file_of(web=web("one"), client=client()))
    stack = site.stack(replace(repository, url=repository.file_url))
    site.arrived(stack, "synced", commit=first)
    second = repository.commit(file_of(web=web("two"), client=client()))
    assert site.webhook(stack).status_code == 202
    site.arrived(stack, "synced", commit=second)
    assert site.said(stack) == "two"
    repository.commit({"trailer.yml": "services: ["})
    site.webhook(stack)
    site.arrived(stack, "failed", commit=second)
    site.user.post(f"/stacks/{stack['id']}/rollback/", {"commit": first})
    site.arrived(stack, "out_of_sync", commit=first)
    assert site.said(stack) == "one"
    site.user.post(f"/stacks/{stack['id']}/deploy/")
    site.arrived(stack, "failed", commit=first)
    last = repository.commit(file_of(web=web("three"), client=client()))
    site.user.patch(f"/stacks/{stack['id']}/", {"poll_interval": 1})
    site.arrived(stack, "synced", commit=last)
    assert site.said(stack) == "three"
    assert not any("plain" in line for line in site.git.requests)
    site.remove(stack)


def test_a_tag_that_moved_in_the_registry_is_deployed_by_a_quick_check(
    site: Site, registry: LocalRegistry
) -> None:
    reference = registry.reference("team/followed")
    push(site.engine, BUSYBOX, reference)
    held = site.engine.images.get(BUSYBOX)
    repository = site.git.repository("keen")
    follows = client() | {"image": reference, "x-trailer": {"drain_timeout": "1s"}}
    commit = repository.commit(file_of(app=follows))
    stack = site.stack(repository)
    site.arrived(stack, "synced", commit=commit)
    assert site.container(stack, "app").image.id == held.id
    moved = registry.reference("team/followed", "2")
    registry.move_tag("team/followed", push(site.engine, HTTPD, moved))
    site.engine.api.remove_image(moved)
    site.user.patch(f"/hosts/{stack['host']}/", {"update_interval": 10})
    site.user.patch(f"/stacks/{stack['id']}/", {"poll_interval": 1})
    newer = site.engine.images.get(HTTPD).id
    of_stack = {"label": f"trailer.stack={stack['id']}"}

    def runs() -> list[str]:
        return [row["ImageID"] for row in site.engine.api.containers(filters=of_stack)]

    def replaces() -> int:
        (served,) = site.seen(stack)["services"]
        return site.user.replaces(served["workspace"])

    # Without a health check there is none for a moment, and the replace is over when the new one
    # has been up for 10 s.
    eventually(lambda: runs() == [newer], 60, "it was not deployed")
    eventually(replaces, 30, "the replace does not end")
    site.arrived(stack, "synced", commit=commit)
    assert runs() == [newer]
    assert replaces() == 1
    site.remove(stack)

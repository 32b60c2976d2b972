"""Trailer as it is deployed: several processes that share one database and one Redis."""

from __future__ import annotations

import io
import json
import tarfile
from contextlib import closing
from typing import TYPE_CHECKING, Any

import psutil
import psycopg
import pytest
import websockets.sync.client

from tests.e2e.scenario import User
from tests.e2e.stack_scene import Site, client, file_of, web
from tests.e2e.terminal_scene import agent_of
from tests.e2e.writers import Load, all_volumes
from tests.ground.images import ensure_images
from tests.ground.postgres import PrivatePostgres
from tests.ground.production import ProductionTrailer
from tests.ground.production_set import RESTARTING
from tests.ground.redis import PrivateRedis
from tests.ground.size import SERVICE_KILLS
from tests.ground.wait import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from websockets.sync.client import ClientConnection

    from tests.ground.engine import PrivateEngine
    from tests.ground.gitserver import GitServer


class Deployment:
    def __init__(self, engine: PrivateEngine, git: GitServer) -> None:
        self.postgres, self.redis = PrivatePostgres(), PrivateRedis()
        self.trailer = ProductionTrailer(
            engine.url, database_url=self.postgres.url, redis_url=self.redis.url
        )
        self.trailer.env["TRAILER_GIT_ALLOW"] = git.allow

    def start(self) -> Deployment:
        self.postgres.start()
        self.redis.start()
        self.trailer.start()
        self.user = User(self.trailer)
        self.host_id = self.user.online_host()["id"]
        body = {"heartbeat_interval": 1, "reconcile_interval": 1}
        self.user.patch(f"/hosts/{self.host_id}/", body)
        return self

    def destroy(self) -> None:
        self.trailer.destroy()
        self.redis.destroy()
        self.postgres.destroy()


@pytest.fixture(scope="module")
def deployment(engine: PrivateEngine, git_server: GitServer) -> Iterator[Deployment]:
    engine.clean()
    made = Deployment(engine, git_server)
    try:
        yield made.start()
    finally:
        made.destroy()
        engine.clean()


def live(deployment: Deployment) -> ClientConnection:
    address = deployment.trailer.url.replace("http", "ws") + "/ws/live/"
    headers = {"Authorization": f"Token {deployment.trailer.token()}"}
    return websockets.sync.client.connect(address, additional_headers=headers)


def badge(deployment: Deployment, name: str) -> None:
    """Create by one process, see it live through another."""
    trailer = deployment.trailer
    with live(deployment) as socket:
        socket.send(json.dumps({"subscribe": ["workspaces"]}))
        workspace = deployment.user.workspace(name)

        def running() -> bool:
            state = json.loads(socket.recv(timeout=30))
            ours = state.get("resource") == f"workspace:{workspace['id']}"
            return bool(ours and state["status"] == "running")

        eventually(running, 60, f"the badge did not become running: {trailer.log()}")


def test_an_edit_in_one_process_is_a_live_badge_in_another(deployment: Deployment) -> None:
    badge(deployment, "across")
    ready = deployment.trailer.session.get(f"{deployment.trailer.url}/readyz", timeout=10)
    assert ready.status_code == 200


def killed_and_started(service: Any, again: Callable[[], object], load: Load) -> None:
    for _ in range(SERVICE_KILLS):
        load.wait_for_more()
        service.kill9()
        again()
        load.wait_for_more()


def test_the_database_and_redis_killed_under_load_lose_no_acknowledged_write(
    deployment: Deployment,
) -> None:
    with Load(deployment.trailer, deployment.host_id) as load:
        killed_and_started(deployment.redis, deployment.redis.start, load)
        killed_and_started(deployment.postgres, deployment.postgres.run, load)
    kept = all_volumes(deployment.user)
    assert len(kept) == len(set(kept))
    assert load.acknowledged <= set(kept)
    # Never a stack trace, and never a lie: what could not be written was refused.
    assert set(load.refused) <= {503}, load.refused
    print(f"{load.said()}; {len(kept)} rows")
    eventually(
        lambda: (
            deployment.trailer.session.get(
                f"{deployment.trailer.url}/readyz", timeout=10
            ).status_code
            == 200
        ),
        60,
        "the web processes did not recover",
    )
    badge(deployment, "afterwards")


def damaged(backup: Path) -> Path:
    """The same backup, of whose database the second half got lost."""
    copy = backup.with_name("damaged.tar.gz")
    with tarfile.open(backup) as source, tarfile.open(copy, "w:gz") as target:
        for member in source:
            part = source.extractfile(member)
            assert part is not None
            whole = part.read()
            kept = whole[: len(whole) // 2] if member.name == "database" else whole
            member.size = len(kept)
            target.addfile(member, io.BytesIO(kept))
    return copy


def test_a_restored_database_removes_nothing_before_it_is_confirmed(
    deployment: Deployment, engine: PrivateEngine
) -> None:
    user, file = deployment.user, deployment.trailer.folder / "backup.tar.gz"
    deployment.trailer.manage("backup", str(file))
    later = user.running("later")
    with pytest.raises(RuntimeError, match="pg_restore failed"):
        deployment.trailer.manage("restore", str(damaged(file)), "--yes")
    assert user.get(f"/workspaces/{later['id']}/")["status"] == "running"
    deployment.trailer.manage("restore", str(file), "--yes")
    assert deployment.trailer.api("GET", f"/workspaces/{later['id']}/").status_code == 404
    path = f"/hosts/{deployment.host_id}/"
    assert user.get(path)["state_restored"]

    def held() -> bool:
        cycles = user.get(f"{path}cycles/")["results"]
        return any(c["cleanup"] == "held" and "backup" in c["message"] for c in cycles)

    eventually(held, 30, "no cycle says that it holds removals")
    with closing(engine.client()) as client:
        assert client.containers.get("trailer-later").status == "running"
        user.post(f"{path}confirm-state/")
        assert not user.get(path)["state_restored"]
        eventually(
            lambda: not client.api.containers(all=True, filters={"name": "trailer-later"}),
            30,
            "the confirmed state was not followed",
        )


def test_the_worker_consumes_again_after_redis_was_killed(deployment: Deployment) -> None:
    """The agent falls silent: only a background job notices that and notes it."""
    deployment.redis.kill9()
    deployment.redis.start()
    agent = agent_of(deployment.trailer)
    agent.suspend()

    def noticed() -> bool:
        with closing(psycopg.connect(deployment.postgres.url)) as connection:
            row = connection.execute("SELECT silent_published FROM hosts_host").fetchone()
        return bool(row and row[0])

    try:
        eventually(noticed, 60, f"no job noticed the silence: {deployment.trailer.log()}")
    finally:
        agent.resume()


def test_a_worker_killed_in_the_middle_of_a_sync_is_replaced_by_the_next(
    deployment: Deployment, engine: PrivateEngine, git_server: GitServer
) -> None:
    """Also what was pushed meanwhile is deployed, though nothing polls: a worker's start looks."""
    with closing(engine.client()) as connected:
        ensure_images(connected)
        site = Site(deployment.trailer, git_server, connected)
        repository = git_server.repository("relay")
        slow = {"test": ["CMD", "sleep", "2"], "interval": "0.1s", "timeout": "5s"}
        repository.commit(file_of(web=web("one", healthcheck=slow), client=client()))
        stack = site.stack(repository)
        eventually(
            lambda: site.seen(stack)["last_sync"]["phase"] == "services", 60, "it never began"
        )
        children = psutil.Process(deployment.trailer.pid).children(recursive=True)
        commands = {child: child.cmdline() for child in children}
        workers = [child for child, words in commands.items() if "worker" in words]
        killed = next(child for child in workers if RESTARTING not in commands[child])
        killed.kill()
        commit = repository.commit(file_of(web=web("two"), client=client()))
        site.arrived(stack, "synced", commit=commit, timeout=60)
        syncs = site.user.get(f"/stacks/{stack['id']}/syncs/")["results"]
        assert [(row["trigger"], row["outcome"]) for row in syncs] == [
            ("poll", "deployed"),
            ("created", "deployed"),
        ]
        assert site.said(stack) == "two"
        site.remove(stack)

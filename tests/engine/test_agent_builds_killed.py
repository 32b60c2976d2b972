"""Agent and engine killed in the middle of a build: it is done again, nothing is left, and an
older image of that name never passes for its result."""

from __future__ import annotations

import threading
from contextlib import closing
from typing import TYPE_CHECKING

from agent.protocol import naming
from tests.engine.agent_forks import AgentForks
from tests.engine.agent_scene import names
from tests.engine.desired_host import DesiredHost
from tests.engine.snapshot_scene import wait_for_end
from tests.ground.images import BUSYBOX
from tests.ground.wait import eventually

if TYPE_CHECKING:
    from pathlib import Path

    import docker

    from tests.ground.engine import PrivateEngine
    from tests.ground.fixtures_engine import EngineFactory

REF = naming.build_ref("i-app")


def dockerfile(number: int) -> str:
    steps = "".join(
        f"RUN echo step-{n}-of-{number} | tee -a /steps; sleep 0.4\n" for n in (1, 2, 3)
    )
    return f"FROM {BUSYBOX}\n{steps}"


def made_by(client: docker.DockerClient, number: int) -> None:
    seen = client.containers.run(REF, ["cat", "/steps"], remove=True).decode().split()
    assert seen == [f"step-{n}-of-{number}" for n in (1, 2, 3)]


def leaves_nothing(client: docker.DockerClient, *others: str) -> None:
    eventually(lambda: names(client) == set(others), 10, "a container of a build stays")


def begin(host: DesiredHost, number: int) -> None:
    host.build("app", dockerfile(number), number=number)


def wait_for_output(host: DesiredHost, number: int) -> None:
    def printed() -> bool:
        log = host.server.book.logs.get(f"b-app-{number}", b"")
        return f"step-1-of-{number}".encode() in log

    eventually(printed, 30, f"build {number} prints nothing")


def test_an_agent_killed_in_the_middle_of_builds(
    clean_engine: PrivateEngine, engine_client: docker.DockerClient, tmp_path: Path
) -> None:
    host, forks = DesiredHost(), AgentForks()
    try:
        for number, moment in enumerate((0.0, 0.2, 0.5, 0.8, 1.1), start=1):
            agent = forks.start(host, clean_engine.url, tmp_path)
            begin(host, number)
            agent.look_again()
            wait_for_output(host, number)
            threading.Event().wait(moment)
            agent.kill()
            agent = forks.start(host, clean_engine.url, tmp_path)
            result = wait_for_end(host, "app", "finished", number=number)
            assert result.engine_id == engine_client.images.get(REF).id
            made_by(engine_client, number)
            leaves_nothing(engine_client)
            agent.kill()
        engine_client.api.remove_image(REF, force=True)
    finally:
        forks.close()
        host.close()


def test_an_engine_killed_in_the_middle_of_builds(
    engine_factory: EngineFactory, tmp_path: Path
) -> None:
    engine = engine_factory()
    host, forks = DesiredHost(), AgentForks()
    with closing(engine.client()) as client:
        client.containers.run(BUSYBOX, ["true"], name="foreign", detach=True)
    try:
        agent = forks.start(host, engine.url, tmp_path)
        for number, moment in enumerate((0.1, 1.0), start=1):
            begin(host, number)
            agent.look_again()
            wait_for_output(host, number)
            threading.Event().wait(moment)
            engine.kill9()
            engine.start()
            result = wait_for_end(host, "app", "finished", number=number, timeout=60)
            with closing(engine.client()) as client:
                assert result.engine_id == client.images.get(REF).id
                made_by(client, number)
                leaves_nothing(client, "foreign")
        # This one is given up before the engine is back.
        begin(host, 3)
        agent.look_again()
        with closing(engine.client()) as client:
            eventually(lambda: len(client.api.containers()) == 1, 30, "no step of the build runs")
        engine.kill9()
        host.cancel_build("app")
        agent.look_again()
        asked = host.server.book.requests.count("GET /state")
        eventually(lambda: host.server.book.requests.count("GET /state") >= asked + 2)
        engine.start()
        wait_for_end(host, "app", "cancelled", number=3, timeout=60)
        with closing(engine.client()) as client:
            leaves_nothing(client, "foreign")
    finally:
        forks.close()
        host.close()

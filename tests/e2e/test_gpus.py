"""A GPU through the whole product: NVIDIA's Python on a made-up library, agent, real engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.scenario import User
from tests.ground.gpus import FakeCard, FakeGpus
from tests.ground.server import RunningTrailer
from tests.ground.wait import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.ground.engine import PrivateEngine

ONE, TWO = FakeCard(id="GPU-one"), FakeCard(id="GPU-two", utilization=88)


@pytest.fixture
def gpus(tmp_path: Path) -> FakeGpus:
    made = FakeGpus(tmp_path / "nvml")
    made.are(ONE, TWO)
    return made


@pytest.fixture
def user(
    gpus: FakeGpus, engine_factory: Callable[..., PrivateEngine], tmp_path: Path
) -> Iterator[User]:
    """On an engine that offers GPUs: it has found NVIDIA's hook, which here does nothing."""
    hook = tmp_path / "bin" / "nvidia-container-runtime-hook"
    hook.parent.mkdir()
    hook.write_text("#!/bin/sh\nexit 0\n")
    hook.chmod(0o755)
    engine = engine_factory(env={"PATH": f"{hook.parent}:/usr/sbin:/usr/bin:/sbin:/bin"})
    trailer = RunningTrailer(engine.url, env=gpus.env)
    try:
        yield User(trailer.start())
    finally:
        trailer.destroy()


def test_a_card_that_is_lost_and_comes_back_is_seen_on_workspace_and_host(
    user: User, gpus: FakeGpus
) -> None:
    host = user.online_host()
    user.patch(f"/hosts/{host['id']}/", {"heartbeat_interval": 1})
    eventually(lambda: len(cards(user)) == 2, 30, "the host's GPUs are not known")
    workspace = user.running("train", gpus={"device_ids": ["GPU-two"]})
    assert cards(user)["GPU-two"]["held_by"] == ["train"]
    refused = user.trailer.api(
        "POST",
        "/workspaces/",
        json={
            **{name: workspace[name] for name in ("host", "image", "command")},
            "name": "second",
            "gpus": {"device_ids": ["GPU-two"]},
        },
    )
    assert refused.status_code == 400
    assert "train" in refused.text

    gpus.are(ONE)
    lost = eventually(lambda: in_state(user, workspace, "error"), 40, "nobody says it is lost")
    assert lost["health"] == "unhealthy"
    assert "GPU GPU-two is lost" in lost["message"]
    assert lost["container_id"] == workspace["container_id"], "nothing is restarted for it"
    assert cards(user)["GPU-two"]["lost"] is True

    gpus.are(ONE, TWO)
    back = eventually(lambda: in_state(user, workspace, "running"), 40, "it stays an error")
    assert (back["message"], back["container_id"]) == ("", workspace["container_id"])
    assert cards(user)["GPU-two"]["lost"] is False

    def busy() -> Any:
        (series,) = [
            found
            for found in user.get(f"/hosts/{host['id']}/metrics/")["gpus"]
            if found["id"] == "GPU-two"
        ]
        return [row for row in series["results"] if row["utilization_percent"] == 88]

    eventually(busy, 30, "its utilisation is not in the metrics")


def cards(user: User) -> dict[str, Any]:
    return {card["id"]: card for card in user.online_host()["gpus"]}


def in_state(user: User, workspace: Any, status: str) -> Any:
    seen = user.get(f"/workspaces/{workspace['id']}/")
    return seen if seen["status"] == status else None

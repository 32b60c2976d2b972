"""An engine that dies or freezes under a running Trailer, as API and open pages show it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.live_socket import LiveSocket
from tests.e2e.scenario import User
from tests.ground.wait import eventually

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.ground.engine import PrivateEngine
    from tests.ground.server import RunningTrailer

# The status of what runs there may be wrong for this long.
IN_TIME = 5.0
SENTENCE = "The engine does not answer since "


def kill(engine: PrivateEngine) -> None:
    engine.kill9()


def freeze(engine: PrivateEngine) -> None:
    engine.freeze()


def revive(engine: PrivateEngine) -> None:
    engine.start()


def thaw(engine: PrivateEngine) -> None:
    engine.thaw()


@pytest.mark.parametrize(("strike", "heal"), [(kill, revive), (freeze, thaw)])
def test_all_that_runs_on_a_silent_engine_says_so_in_time_and_recovers(
    engine_factory: Callable[[], PrivateEngine],
    trailer_factory: Callable[..., RunningTrailer],
    strike: Callable[[PrivateEngine], None],
    heal: Callable[[PrivateEngine], None],
) -> None:
    engine = engine_factory()
    trailer = trailer_factory(engine.url)
    user = User(trailer)
    workspace = user.running("survivor")
    host = user.online_host()["id"]
    network = user.post("/networks/", {"name": "lab", "host": host}, status=201)
    volume = user.post("/volumes/", {"name": "data", "host": host}, status=201)
    names = {
        "workspace": workspace["id"],
        "image": workspace["image"],
        "network": network["id"],
        "volume": volume["id"],
    }
    made = [f"/networks/{network['id']}/", f"/volumes/{volume['id']}/"]
    # An engine killed in the middle of making a network may never start again.
    eventually(lambda: all(user.get(path)["status"] == "created" for path in made), 20)
    pages = LiveSocket(trailer, *[f"{kind}:{pk}" for kind, pk in names.items()])

    def seen() -> list[dict[str, Any]]:
        told = [user.get(f"/{kind}s/{pk}/") for kind, pk in names.items()]
        return [*told, *[pages.latest(f"{kind}:{pk}") for kind, pk in names.items()]]

    eventually(lambda: all(one.get("fresh") and not one["message"] for one in seen()), 20)
    strike(engine)
    eventually(
        lambda: all(not one["fresh"] and one["message"].startswith(SENTENCE) for one in seen()),
        IN_TIME,
        "not all of it is shown as stale in time",
    )
    assert user.get(f"/workspaces/{workspace['id']}/")["status"] == "running"
    told = user.get(f"/hosts/{host}/")
    assert (told["status"], told["fresh"]) == ("online", True)
    assert told["message"].startswith(SENTENCE)
    heal(engine)
    eventually(
        lambda: all(one["fresh"] and not one["message"] for one in seen()),
        IN_TIME,
        "not all of it is fresh again in time",
    )
    user.wait_for(workspace, "running")
    pages.close()

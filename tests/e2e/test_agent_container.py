"""The agent as a container: enrolled by one pasted line, replaced by the overseer, never lost."""

from __future__ import annotations

import os
import signal
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from docker.errors import NotFound

from agent.guard import table
from agent.runtime.docker_guard import GUARD_NAME
from tests.e2e.agent_container import AgentHost
from tests.ground import agent_image, hostnet
from tests.ground.elsewhere import Elsewhere
from tests.ground.images import BUSYBOX
from tests.ground.wait import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.ground.engine import PrivateEngine

QUICK = ("-e", "TRAILER_OVERSEER_PATIENCE=12", "-e", "TRAILER_OVERSEER_PAUSE=1", "-e", "MINE=1")
NEWER = "trailer-test/agent:2"
BROKEN = {
    "crash": f'FROM {BUSYBOX}\nENTRYPOINT ["sh", "-c", "exit 1"]\n',
    "hang": f'FROM {agent_image.AGENT}\nENTRYPOINT ["sleep", "1000"]\nCMD []\n',
    "mute": f"FROM {agent_image.AGENT}\n"
    'ENTRYPOINT ["env", "TRAILER_SERVER_URL=http://127.0.0.1:9", "python3", "-m", "agent"]\n',
}


@pytest.fixture(scope="module")
def far(engine: PrivateEngine) -> Iterator[AgentHost]:
    engine.clean()
    # The agent's token changes with every beat, also in the middle of each replacement.
    scene = AgentHost(engine, TRAILER_AGENT_TOKEN_AGE="1")
    with closing(engine.client(timeout=120)) as client:
        agent_image.build(client, NEWER, f"FROM {agent_image.AGENT}\nLABEL trailer.newer=1\n", {})
        for name, text in BROKEN.items():
            agent_image.build(client, f"trailer-test/agent:{name}", text, {})
    yield scene
    engine.clean()
    scene.close()


def parts_of(container: Any) -> Any:
    """What must survive a replacement."""
    attrs = container.attrs
    return {
        "env": [e for e in attrs["Config"]["Env"] if "ENROLMENT" not in e],
        "binds": sorted(attrs["HostConfig"]["Binds"]),
        "network": attrs["HostConfig"]["NetworkMode"],
        "pid": attrs["HostConfig"]["PidMode"],
        "ports": attrs["HostConfig"]["PortBindings"],
        "restart": attrs["HostConfig"]["RestartPolicy"],
    }


def test_the_pasted_line_brings_a_host_online_and_the_first_boot_is_replaced(
    far: AgentHost,
) -> None:
    enrolment = far.enrolment()
    far.paste(enrolment["command"], QUICK)
    pasted = far.agent()
    host = far.wait_online()
    assert host["agent_version"]
    assert any(interface["name"] == "eth0" for interface in host["interfaces"])
    again = far.server.session.post(
        f"{far.server.url}/api/agent/v1/enrol", json={"token": enrolment["token"]}, timeout=10
    )
    assert again.status_code == 403
    body = {"name": "busybox", "host": far.host_id, "kind": "pull"}
    far.user.post("/images/", body | {"reference": BUSYBOX}, status=201)
    first = far.user.running("first")
    new = far.wait_replaced(pasted.id)
    assert new.labels["trailer.created-at"]
    assert parts_of(new) == parts_of(pasted)
    assert not [e for e in new.attrs["Config"]["Env"] if "ENROLMENT" in e]
    assert far.works()
    assert far.user.get(f"/workspaces/{first['id']}/")["container_id"] == first["container_id"]
    assert len(far.user.get("/audit/?action=host.token")["results"]) > 2


def test_its_containers_are_kept_from_metadata_until_an_administrator_switches_that_off(
    far: AgentHost,
) -> None:
    def is_told(state: str) -> bool:
        return bool(far.host()["metadata_guard"] == {"state": state, "message": ""})

    with Elsewhere(hostnet.NAMESPACES / far.engine.host.name) as machine:
        eventually(lambda: is_told("blocked"), 30, far.story())
        assert machine.run(table.is_in_place)
        far.user.patch(f"/hosts/{far.host_id}/", {"block_metadata": False})
        eventually(lambda: is_told("open"), 30, far.story())
        assert not machine.run(table.is_in_place)
    with pytest.raises(NotFound):
        far.client.containers.get(GUARD_NAME)


def test_a_broken_image_never_takes_over_and_the_host_stays_reconciled(far: AgentHost) -> None:
    old = far.agent()
    for kind in BROKEN:
        far.wants(f"trailer-test/agent:{kind}")

        def told(kind: str = kind) -> Any:
            host = far.host()
            assert host["update_image"].endswith(kind), far.story()
            return host["update_message"]

        assert eventually(told, 60, "the failure is not shown", 0.3)
        assert far.agent().id == old.id
    far.user.running("meanwhile")
    far.wants("")
    eventually(lambda: far.names() == {"trailer-agent"}, 60, far.story(), 0.3)
    assert far.agent().id == old.id
    eventually(lambda: not far.host()["update_message"], 20, "the failure is still shown")


def kill_overseer(far: AgentHost) -> None:
    """As a crash does: by the process, not by a call that the engine would take for an order."""
    found = far.client.api.inspect_container("trailer-agent-overseer")
    os.kill(found["State"]["Pid"], signal.SIGKILL)


def wait_names(far: AgentHost, present: str, absent: str = "") -> None:
    def there() -> bool:
        names = far.names()
        return present in names and absent not in names

    eventually(there, 60, f"no {present}: {far.story()}", 0.01)


def test_the_overseer_killed_over_the_trial_starts_again_and_ends_its_work(far: AgentHost) -> None:
    old = far.agent()
    far.wants(NEWER)
    wait_names(far, "trailer-agent-next")
    kill_overseer(far)
    new = far.wait_replaced(old.id)
    assert new.labels["trailer.newer"] == "1"
    eventually(far.works, 20, "the new agent does not work")
    assert far.host()["agent_image_running"] == NEWER


def test_the_overseer_killed_between_two_agents_brings_one_back(far: AgentHost) -> None:
    old = far.agent()
    far.wants(agent_image.AGENT)
    wait_names(far, "trailer-agent-previous")
    kill_overseer(far)
    far.wait_replaced(old.id)
    eventually(far.works, 20, "the new agent does not work")


def test_the_engine_killed_between_two_agents_brings_one_back(far: AgentHost) -> None:
    old = far.agent()
    far.wants(NEWER)
    wait_names(far, "trailer-agent-previous")
    far.engine.kill9()
    far.engine.start()
    far.wait_replaced(old.id)
    eventually(far.works, 20, "the new agent does not work")
    far.user.running("after-all")


def test_an_update_to_a_name_that_was_made_anew_replaces_the_agent(far: AgentHost) -> None:
    """No registry has it: an order for the very image that runs is refused, and says why."""
    old = far.agent()
    assert old.attrs["Config"]["Image"] == NEWER

    def update() -> Any:
        far.user.post("/agent-rollouts/", {"image": NEWER}, status=201)

        def ended() -> Any:
            newest = far.user.get("/agent-rollouts/")[0]
            return newest if newest["status"] != "running" else None

        return eventually(ended, 90, f"the rollout goes on and on: {far.story()}", 0.3)

    refused = update()
    assert refused["status"] == "halted"
    assert "could not be fetched" in refused["message"]
    assert far.agent().id == old.id
    text = f"FROM {agent_image.AGENT}\nLABEL trailer.newer=2\n"
    agent_image.build(far.client, NEWER, text, {})
    assert update()["status"] == "done"
    new = far.wait_replaced(old.id)
    assert new.labels["trailer.newer"] == "2"
    eventually(far.works, 20, "the new agent does not work")


def test_a_maintenance_window_ends_with_a_fresh_agent_and_stops_no_workspace(
    far: AgentHost,
) -> None:
    workspace = far.user.running("untouched")
    old = far.agent()
    far.user.patch(f"/hosts/{far.host_id}/", {"maintenance_schedule": "* * * * *"})
    new = far.wait_replaced(old.id, timeout=150)
    far.user.patch(f"/hosts/{far.host_id}/", {"maintenance_schedule": ""})
    assert new.labels["trailer.overseer"] != old.labels["trailer.overseer"]
    cycles = far.user.get(f"/hosts/{far.host_id}/cycles/")["results"]
    report = next(cycle for cycle in cycles if cycle["trigger"] == "maintenance")
    assert [step["step"] for step in report["steps"]] == [
        "check_digests",
        "report_disk",
        "remove_untagged_images",
    ]
    assert "disk: images" in report["message"]
    seen = far.user.get(f"/workspaces/{workspace['id']}/")
    assert seen["container_id"] == workspace["container_id"]
    assert seen["restart_count"] == 0


def test_an_agent_whose_state_was_lost_touches_nothing_until_it_is_enrolled_again(
    far: AgentHost,
) -> None:
    seen = far.user.get("/workspaces/?name=untouched")["results"][0]
    old = far.agent()
    old.remove(force=True)
    far.client.volumes.get("trailer-agent").remove()
    far.paste(far.last_command, QUICK)
    eventually(lambda: far.agent().attrs["RestartCount"] > 0, 30, "it works without a credential")
    assert far.client.containers.get("trailer-untouched").id == seen["container_id"]
    far.agent().remove(force=True)
    far.client.volumes.get("trailer-agent").remove()
    far.paste(far.enrolment()["command"], (*QUICK, "-e", "TRAILER_AGENT_SELF_UPDATE=0"))
    eventually(far.works, 40, "the enrolled agent does not work")
    far.user.running("after-loss")
    # Shut out, then enrolled again beside the volume that still holds the old credential.
    far.user.post(f"/hosts/{far.host_id}/revoke/")
    far.agent().remove(force=True)
    far.paste(far.enrolment()["command"], (*QUICK, "-e", "TRAILER_AGENT_SELF_UPDATE=0"))
    eventually(far.works, 40, "the agent that was enrolled again does not work")
    assert far.client.containers.get("trailer-untouched").id == seen["container_id"]
    assert far.names() == {"trailer-agent"}

"""The new agent's container is like the old one, without what only came from the old image."""

from typing import Any

import pytest

from agent.overseer.order import Order
from agent.overseer.own_id import container_id_in
from agent.overseer.spawn import Self, difference, reason_to_spawn
from agent.overseer.traefik import derived_labels
from agent.runtime.docker_agent_config import agent_config, next_config, overseer_config

ID = "ab" * 32
IMAGE: dict[str, Any] = {
    "Config": {
        "Env": ["PATH=/bin", "TRAILER_AGENT_STATE_DIR=/var/lib/trailer"],
        "Cmd": ["run"],
        "Entrypoint": ["python3", "-m", "agent"],
        "Labels": {"trailer.version": "1"},
        "WorkingDir": "/opt/trailer",
        "ExposedPorts": {"80/tcp": {}},
        "Healthcheck": {"Test": ["CMD", "old"]},
    }
}


def container(**config: Any) -> dict[str, Any]:
    """As the engine describes one that a person started with `docker run`."""
    return {
        "Id": ID,
        "Image": "sha256:old",
        "Config": {
            **IMAGE["Config"],
            "Hostname": ID[:12],
            "Image": "trailer/agent:1",
            "Env": [*IMAGE["Config"]["Env"], "TRAILER_SERVER_URL=http://s", "PATH=/mine"],
            "Labels": {"trailer.version": "1", "trailer.agent": "true", "team": "ops"},
            "ExposedPorts": {"80/tcp": {}, "6020/tcp": {}},
            **config,
        },
        "HostConfig": {
            "NetworkMode": "front",
            "Binds": ["/var/run/docker.sock:/var/run/docker.sock", "state:/var/lib/trailer"],
            "PortBindings": {"6020/tcp": [{"HostIp": "", "HostPort": "6020"}]},
            "RestartPolicy": {"Name": "unless-stopped", "MaximumRetryCount": 0},
            "LogConfig": {"Type": "json-file", "Config": {"max-size": "1m"}},
            "PidMode": "host",
        },
        "Mounts": [
            {"Type": "volume", "Name": "state", "Destination": "/var/lib/trailer"},
            {"Type": "volume", "Name": "f00d", "Destination": "/cache"},
        ],
        "NetworkSettings": {
            "Networks": {
                "front": {"Aliases": ["agent", ID[:12]], "IPAddress": "10.0.0.2"},
                "back": {"IPAMConfig": {"IPv4Address": "10.1.0.9"}, "Aliases": None},
            }
        },
    }


def made(raw: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    return agent_config(raw, IMAGE, reference="agent:2", created_at="now", made_by="o1")


def test_values_of_the_old_image_are_left_to_the_new_one() -> None:
    config, _ = made(container())
    assert config["Image"] == "agent:2"
    assert config["Env"] == ["TRAILER_SERVER_URL=http://s", "PATH=/mine"]
    for name in ("Cmd", "Entrypoint", "WorkingDir", "Healthcheck", "Hostname", "User"):
        assert name not in config
    assert config["ExposedPorts"] == {"6020/tcp": {}}


def test_what_a_person_chose_is_kept() -> None:
    config, networks = made(container(Cmd=["run", "--x"], User="10001", Hostname="north"))
    assert (config["Cmd"], config["User"], config["Hostname"]) == (
        ["run", "--x"],
        "10001",
        "north",
    )
    host = config["HostConfig"]
    old = container()["HostConfig"]
    assert {k: v for k, v in host.items() if k != "Binds"} == {
        k: v for k, v in old.items() if k != "Binds"
    }
    # The nameless volume too: it may hold what the agent needs.
    assert host["Binds"] == [*old["Binds"], "f00d:/cache"]
    first = config["NetworkingConfig"]["EndpointsConfig"]
    assert first == {"front": {"Aliases": ["agent"]}}
    assert networks == {"back": {"IPAMConfig": {"IPv4Address": "10.1.0.9"}}}


def test_the_new_agent_says_who_made_it_and_forgets_the_spent_token() -> None:
    config, _ = made(container(Env=["TRAILER_ENROLMENT_TOKEN=enrol_secret", "A=1"]))
    assert config["Env"] == ["A=1"]
    assert config["Labels"] == {
        "team": "ops",
        "trailer.agent": "true",
        "trailer.created-at": "now",
        "trailer.overseer": "o1",
    } | {k: v for k, v in container()["Config"]["Labels"].items() if k == "team"}


def test_labels_for_traefik_follow_from_the_environment_alone() -> None:
    old = {"traefik.enable": "false", "traefik.http.routers.trailer-agent.rule": "Host(`old`)"}
    config, _ = made(container(Env=["TRAILER_PUBLIC_DOMAIN=a.example.org"], Labels=old))
    labels = config["Labels"]
    assert labels["traefik.enable"] == "true"
    assert labels["traefik.http.routers.trailer-agent.rule"] == "Host(`a.example.org`)"
    assert labels["traefik.http.routers.trailer-agent.entrypoints"] == "websecure"
    assert labels["traefik.http.routers.trailer-agent.tls.certresolver"] == "letsencrypt"
    assert labels["traefik.http.services.trailer-agent.loadbalancer.server.port"] == "6020"
    assert derived_labels({}) == {}


def test_the_trial_holds_no_port_no_address_no_label_and_reconciles_nothing() -> None:
    config = next_config(container(), IMAGE, reference="agent:2")
    assert config["Cmd"] == ["validate"]
    assert config["Labels"] == {"trailer.agent-role": "next"}
    assert config["HostConfig"]["PortBindings"] == {}
    assert config["HostConfig"]["RestartPolicy"]["Name"] == "no"
    assert config["NetworkingConfig"] == {"EndpointsConfig": {"front": {}}}


def test_the_overseer_is_made_from_the_image_that_runs_and_started_again_after_a_bad_end() -> None:
    config = overseer_config(container(), IMAGE)
    assert config["Image"] == "sha256:old"
    assert config["Cmd"] == ["overseer"]
    assert config["HostConfig"]["RestartPolicy"]["Name"] == "on-failure"
    assert config["Labels"] == {"trailer.agent-role": "overseer"}


def test_an_agent_on_the_hosts_network_joins_no_other() -> None:
    raw = container(Hostname="north")
    raw["HostConfig"]["NetworkMode"] = "host"
    raw["NetworkSettings"]["Networks"] = {"host": {"NetworkID": "h"}}
    config, networks = made(raw)
    assert networks == {}
    assert "NetworkingConfig" not in config
    assert "Hostname" not in config


MADE = {"trailer.created-at": "now", "trailer.agent": "true"}


@pytest.mark.parametrize(
    ("labels", "environment", "desired", "word"),
    [
        ({}, {}, "", "not made by an overseer"),
        (MADE, {"TRAILER_PUBLIC_DOMAIN": "a.example.org"}, "", "labels"),
        (MADE, {}, "trailer/agent:2", "trailer/agent:2"),
        (MADE, {}, "", ""),
        (MADE, {}, "docker.io/trailer/agent:1", ""),
    ],
)
def test_when_the_agents_container_is_not_the_wanted_one(
    labels: dict[str, str], environment: dict[str, str], desired: str, word: str
) -> None:
    own = Self(id=ID, image="trailer/agent:1", labels=labels, environment=environment)
    why = difference(own, desired)
    assert bool(why) == bool(word)
    assert word in why


def test_leftovers_and_the_end_of_maintenance_call_an_overseer_too() -> None:
    own = Self(id=ID, image="trailer/agent:1", labels=MADE)

    def why(*, leftovers: bool, maintained: bool) -> str:
        return reason_to_spawn(
            own, order=Order(), answered=0, leftovers=leftovers, maintained=maintained
        )

    assert why(leftovers=False, maintained=False) == ""
    assert "interrupted" in why(leftovers=True, maintained=False)
    assert "maintenance" in why(leftovers=False, maintained=True)


def test_an_order_calls_an_overseer_until_it_was_answered_though_the_name_is_the_same() -> None:
    own = Self(id=ID, image="trailer/agent:latest", labels=MADE)

    def why(order: Order, answered: int) -> str:
        return reason_to_spawn(
            own, order=order, answered=answered, leftovers=False, maintained=False
        )

    order = Order(image="trailer/agent:latest", number=8)
    assert "trailer/agent:latest" in why(order, 0)
    assert "trailer/agent:latest" in why(order, 7)
    assert why(order, 8) == ""
    assert why(Order(image="trailer/agent:latest"), 0) == ""


def test_a_process_finds_its_container_among_its_mounts() -> None:
    line = (
        f"612 590 8:1 /var/lib/docker/containers/{ID}/hostname /etc/hostname rw - ext4 /dev/vda rw"
    )
    assert container_id_in(line) == ID
    assert container_id_in("612 590 8:1 / / rw - ext4 /dev/vda rw") == ""
    being_made = line.replace(" /etc/", " /var/lib/docker/overlay2/1f/merged/etc/")
    assert being_made != line
    assert container_id_in(being_made) == "", "somebody else's, seen from outside"

"""What an overseer takes from the server: a login for that very registry, and allowed orders."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent.config import Config
from agent.overseer.order import Order
from agent.overseer.wanted import agent_login, load_agent, wanted_order
from agent.protocol.state import HostSettings, HostState, RegistryCredential
from agent.store.document import save_document
from tests.agent.agents_model import Engine

if TYPE_CHECKING:
    from pathlib import Path

IMAGE = "registry.example.com/trailer/agent:2"


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """Of an agent whose server is away: the last good document tells."""
    save_document(
        tmp_path,
        HostState(
            host_id="h",
            protocol=1,
            state_epoch=1,
            version=1,
            settings=HostSettings(agent_image=IMAGE, agent_order=7),
            agent_credential=RegistryCredential(
                server="registry.example.com", username="fleet", password="open sesame"
            ),
        ),
    )
    return Config(server_url="http://127.0.0.1:9", state_dir=tmp_path)


def test_the_login_goes_to_its_own_registry_only(config: Config) -> None:
    assert wanted_order(config) == Order(image=IMAGE, number=7)
    found = agent_login(config, IMAGE)
    assert found is not None
    assert (found.username, found.password) == ("fleet", "open sesame")
    assert "sesame" not in repr(found)
    for other in ("trailer/agent:2", "registry.example.com.evil.org/trailer/agent:2", "agent"):
        assert agent_login(config, other) is None


def test_without_any_document_there_is_no_login_and_no_order_is_known(tmp_path: Path) -> None:
    config = Config(server_url="http://127.0.0.1:9", state_dir=tmp_path)
    assert agent_login(config, IMAGE) is None
    assert wanted_order(config) is None


def test_an_order_that_the_hosts_policy_refuses_is_none(config: Config) -> None:
    policy = config.state_dir / "policy.toml"
    policy.write_text('agent_images = ["registry.example.com/trailer/*"]\n')
    assert wanted_order(config) == Order(image=IMAGE, number=7)
    policy.write_text('agent_images = ["registry.example.com/other/*"]\n')
    assert wanted_order(config) == Order()
    policy.write_text("agent_images = oops")
    assert wanted_order(config) is None


def test_an_image_that_the_hosts_policy_refuses_is_not_loaded_from_the_server(
    config: Config,
) -> None:
    (config.state_dir / "policy.toml").write_text("agent_images = []\n")
    engine = Engine()
    said = load_agent(config, engine, "trailer.invalid/agent:2")
    assert said == "This host's policy does not let the server hand out trailer.invalid/agent:2."
    (config.state_dir / "policy.toml").unlink()
    assert "Without the agent's identity" in load_agent(config, engine, "trailer.invalid/agent:2")
    assert engine.loaded == []

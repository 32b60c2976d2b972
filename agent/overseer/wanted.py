"""Which image the server wants its agent to be, and what opens its registry; asked by the overseer
itself."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from agent.diff.images import credential_for
from agent.errors import AgentError, ConfigError
from agent.host_policy import policy_of
from agent.overseer.archive import load_from_server
from agent.overseer.order import Order, order_in
from agent.server.http import HttpServer
from agent.store.document import load_document, read_document
from agent.store.identity import load_identity
from agent.store.token import StoredToken

if TYPE_CHECKING:
    from agent.config import Config
    from agent.engine_requests import Credential
    from agent.overseer.port import AgentEngine
    from agent.protocol.state import HostState


log = logging.getLogger(__name__)


def wanted_order(config: Config) -> Order | None:
    """As far as the host's policy allows; None: there is nobody to tell, which takes no order
    back."""
    try:
        policy = policy_of(config)
    except ConfigError as problem:
        log.warning("no order is followed: %s", problem)
        return None
    state = _state(config)
    return order_in(policy.settings(state.settings)) if state else None


def agent_login(config: Config, image: str) -> Credential | None:
    """None where the server has nothing for the registry of just this image."""
    state = _state(config)
    return credential_for(image, state.agent_credential) if state else None


def load_agent(config: Config, engine: AgentEngine, image: str) -> str:
    """Load the image from the server; why that was not possible, or empty."""
    if not policy_of(config).allows_agent(image):
        return f"This host's policy does not let the server hand out {image}."
    server = _server(config)
    if server is None:
        return "Without the agent's identity the server cannot be asked for it."
    return load_from_server(server, engine, image=image, state_dir=config.state_dir)


def _state(config: Config) -> HostState | None:
    """Without a server the last good document tells."""
    try:
        identity = load_identity(config.state_dir)
        server = _server(config)
        if identity is not None and server is not None:
            return read_document(server.check().body, host_id=identity.host_id)
    except AgentError:
        pass
    return load_document(config.state_dir)


def _server(config: Config) -> HttpServer | None:
    identity = load_identity(config.state_dir)
    if identity is None:
        return None
    token = StoredToken(config.state_dir, identity, writes=False)
    return HttpServer(config.server_url, token=token, plain_http=config.plain_http)

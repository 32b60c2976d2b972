"""Which image the server wants its agent to be, and what opens its registry; asked by the overseer
itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.diff.images import credential_for
from agent.errors import AgentError
from agent.overseer.order import Order, order_in
from agent.server.http import HttpServer
from agent.store.document import load_document, read_document
from agent.store.identity import load_identity
from agent.store.token import StoredToken

if TYPE_CHECKING:
    from agent.config import Config
    from agent.engine_requests import Credential
    from agent.protocol.state import HostState


def wanted_order(config: Config) -> Order | None:
    """None: there is nobody to tell, which takes no order back."""
    state = _state(config)
    return order_in(state.settings) if state else None


def agent_login(config: Config, image: str) -> Credential | None:
    """None where the server has nothing for the registry of just this image."""
    state = _state(config)
    return credential_for(image, state.agent_credential) if state else None


def _state(config: Config) -> HostState | None:
    """Without a server the last good document tells."""
    try:
        identity = load_identity(config.state_dir)
        if identity is not None:
            token = StoredToken(config.state_dir, identity, writes=False)
            server = HttpServer(config.server_url, token=token, plain_http=config.plain_http)
            return read_document(server.check().body, host_id=identity.host_id)
    except AgentError:
        pass
    return load_document(config.state_dir)

"""Who this agent is: the stored identity, or one that an enrolment token buys."""

from __future__ import annotations

import hashlib
import logging
import platform
from typing import TYPE_CHECKING

import msgspec

from agent.errors import ConfigError, ServerError, ServerUnavailable
from agent.protocol.session import EnrolRequest
from agent.store.forget import forget_host
from agent.store.identity import Identity, identity_lock, load_identity, save_identity
from agent.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.config import Config
    from agent.protocol.session import EnrolReply

log = logging.getLogger(__name__)


def enrolled(config: Config, redeem: Callable[[EnrolRequest], EnrolReply]) -> Identity:
    """A token that was not redeemed here yet wins over what is stored: an operator pasted it. One
    that was says nothing more, so a container may keep it in its environment for ever."""
    known = load_identity(config.state_dir)
    token = config.enrolment_token
    if not token:
        if known is None:
            raise ConfigError(
                f"The agent has no credential: {config.state_dir} holds no identity.json and "
                "TRAILER_ENROLMENT_TOKEN is not set. Enrol the host on the server's page."
            )
        return known
    mark = hashlib.sha256(token.encode()).hexdigest()
    if known is None or known.enrolled_with:
        return known if known and known.enrolled_with == mark else _enrol(config, redeem, mark)
    # Of a version that did not keep the mark: most likely this very token made it.
    try:
        return _enrol(config, redeem, mark)
    except ServerUnavailable:
        return known
    except ServerError as problem:
        log.warning("the agent goes on as host %s: %s", known.host_name, problem)
        known = msgspec.structs.replace(known, enrolled_with=mark)
        save_identity(config.state_dir, known)
        return known


def _enrol(config: Config, redeem: Callable[[EnrolRequest], EnrolReply], mark: str) -> Identity:
    reply = redeem(
        EnrolRequest(token=config.enrolment_token, agent_version=VERSION, hostname=platform.node())
    )
    identity = Identity(
        token=reply.token,
        host_id=reply.host_id,
        host_key=reply.host_key,
        host_name=reply.host_name,
        enrolled_with=mark,
    )
    with identity_lock(config.state_dir):
        known = load_identity(config.state_dir)
        if known is not None and known.host_id != identity.host_id:
            # Before the new identity is kept: what the other host had must never look like ours.
            forget_host(config.state_dir)
        save_identity(config.state_dir, identity)
    return identity

"""The agent's own principal: a bearer token bound to exactly one host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hosts.selectors import live_agent_token
from hosts.services.tokens import agent_token_first_use
from trailer.errors import ApplicationError, Conflict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hosts.models import AgentToken, Host


class AgentRefused(ApplicationError):
    code = "not_signed_in"
    status = 401


def host_for_bearer(authorization: str) -> Host:
    """The host comes from the token alone, never from the address or the body."""
    return agent_for_bearer(authorization).host


def agent_for_bearer(authorization: str) -> AgentToken:
    """The token in use. One that is used for the first time ends the one before it."""
    key = bearer_key(authorization)
    token = live_agent_token(key) if key else None
    if token is None or (token.is_unused and not agent_token_first_use(token)):
        raise AgentRefused("This agent token is unknown or revoked. Enrol the host again.")
    return token


def bearer_key(authorization: str) -> str:
    keyword, _, key = authorization.partition(" ")
    return key.strip() if keyword == "Bearer" else ""


def require_epoch(host: Host, epoch: int) -> None:
    """Fencing: of two agents with one token only the one that started last may go on."""
    if epoch != host.epoch:
        raise Conflict(
            f"A newer agent session ({host.epoch}) has taken over host {host.name}.",
            code="superseded",
        )


def epoch_of(headers: Mapping[str, str]) -> int:
    text = headers.get("Trailer-Epoch", "")
    return int(text) if text.isdecimal() and len(text) < 19 else -1

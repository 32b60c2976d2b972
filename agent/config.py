"""The agent's configuration, from the environment only."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from agent.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, kw_only=True)
class Config:
    server_url: str
    state_dir: Path
    enrolment_token: str = field(default="", repr=False)
    # What the engine's client reads: DOCKER_HOST, DOCKER_TLS_VERIFY, DOCKER_CERT_PATH.
    engine_environment: Mapping[str, str] = field(default_factory=dict)
    log_level: str = "INFO"
    engine_workers: int = 8


def read_config(environment: Mapping[str, str]) -> Config:
    server_url = environment.get("TRAILER_SERVER_URL", "").strip()
    if not server_url.startswith(("http://", "https://")):
        raise ConfigError("Set TRAILER_SERVER_URL to the address of the Trailer server.")
    state_dir = environment.get("TRAILER_AGENT_STATE_DIR", "").strip()
    if not state_dir:
        raise ConfigError("Set TRAILER_AGENT_STATE_DIR to a folder the agent may write to.")
    return Config(
        server_url=server_url,
        state_dir=Path(state_dir),
        enrolment_token=environment.get("TRAILER_ENROLMENT_TOKEN", "").strip(),
        engine_environment={k: v for k, v in environment.items() if k.startswith("DOCKER_")},
        engine_workers=_number(environment, "TRAILER_AGENT_ENGINE_WORKERS", 8),
        log_level=environment.get("TRAILER_AGENT_LOG_LEVEL", "INFO").upper(),
    )


def _number(environment: Mapping[str, str], name: str, default: int) -> int:
    text = environment.get(name, "").strip()
    if not text:
        return default
    if not text.isdecimal() or not 1 <= int(text) <= 64:
        raise ConfigError(f"{name} must be a whole number from 1 to 64, not {text!r}.")
    return int(text)

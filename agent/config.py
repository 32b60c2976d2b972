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
    # The operator says that the way to a public address without encryption is safe.
    plain_http: bool = False
    # What the engine's client reads: DOCKER_HOST, DOCKER_TLS_VERIFY, DOCKER_CERT_PATH.
    engine_environment: Mapping[str, str] = field(default_factory=dict)
    log_level: str = "INFO"
    # What the host's operator allows; without it the file in the state folder, if there is one.
    policy_path: Path | None = None
    engine_workers: int = 8
    # Where `python -m agent health` looks.
    health_file: str = ""
    # Off: whoever started this agent's container also replaces it.
    replaces_itself: bool = True
    # Seconds that a new agent has to prove itself, and the first pause after it did not.
    overseer_patience: float = 120.0
    overseer_pause: float = 10.0


def read_config(environment: Mapping[str, str]) -> Config:
    server_url = environment.get("TRAILER_SERVER_URL", "").strip()
    if not server_url.startswith(("http://", "https://")):
        raise ConfigError("Set TRAILER_SERVER_URL to the address of the Trailer server.")
    state_dir = environment.get("TRAILER_AGENT_STATE_DIR", "").strip()
    if not state_dir:
        raise ConfigError("Set TRAILER_AGENT_STATE_DIR to a folder the agent may write to.")
    policy = environment.get("TRAILER_AGENT_POLICY", "").strip()
    return Config(
        server_url=server_url,
        state_dir=Path(state_dir),
        policy_path=Path(policy) if policy else None,
        enrolment_token=environment.get("TRAILER_ENROLMENT_TOKEN", "").strip(),
        plain_http=environment.get("TRAILER_AGENT_PLAIN_HTTP", "").strip() == "1",
        engine_environment={k: v for k, v in environment.items() if k.startswith("DOCKER_")},
        engine_workers=_number(environment, "TRAILER_AGENT_ENGINE_WORKERS", 8),
        health_file=environment.get("TRAILER_AGENT_HEALTH_FILE", "").strip(),
        replaces_itself=environment.get("TRAILER_AGENT_SELF_UPDATE", "1").strip() != "0",
        overseer_patience=_number(environment, "TRAILER_OVERSEER_PATIENCE", 120, most=3600),
        overseer_pause=_number(environment, "TRAILER_OVERSEER_PAUSE", 10, most=3600),
        log_level=environment.get("TRAILER_AGENT_LOG_LEVEL", "INFO").upper(),
    )


def _number(environment: Mapping[str, str], name: str, default: int, *, most: int = 64) -> int:
    text = environment.get(name, "").strip()
    if not text:
        return default
    if not text.isdecimal() or not 1 <= int(text) <= most:
        raise ConfigError(f"{name} must be a whole number from 1 to {most}, not {text!r}.")
    return int(text)

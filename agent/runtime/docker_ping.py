"""`GET /_ping` on a connection of its own: whether the engine answers at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from docker.constants import MINIMUM_DOCKER_API_VERSION
from docker.utils import kwargs_from_env

from agent.runtime.docker_client import QUICK, RecordingClient, own_error

if TYPE_CHECKING:
    from collections.abc import Mapping


class DockerPing:
    """For one thread. A ping has no API version, so nothing is negotiated first; it is no engine
    call that is counted."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._settings: Final[dict[str, Any]] = dict(kwargs_from_env(environment=environment))
        self._client: RecordingClient | None = None

    def ping(self, *, deadline: float) -> None:
        """Raises EngineUnavailable unless the engine answers in time. An answer of any kind shows
        that it is alive."""
        try:
            client = self._client or RecordingClient(
                **self._settings,
                version=MINIMUM_DOCKER_API_VERSION,
                timeout=QUICK,
                max_pool_size=1,
            )
            self._client = client
            client.get(f"{client.base_url}/_ping", timeout=deadline)
        except Exception as problem:
            translated = own_error(problem)
            if translated is problem:
                raise
            raise translated from problem

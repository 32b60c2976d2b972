"""Networks on a Docker engine, addressed by id because names are not unique on older engines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent.errors import EngineError, NotFound
from agent.runtime.docker_client import CHANGE, Connections
from agent.runtime.docker_requests import network_config

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.engine_requests import NetworkRequest

# The engine's key for an endpoint that belongs to no container.
_GHOST = "ep-"


class DockerNetworks:
    """The network part of the port."""

    _engine: Connections

    def connect_network(self, network_id: str, container_id: str, *, alias: str) -> None:
        aliases = [alias] if alias else None
        try:
            self._engine.run(
                lambda api: api.connect_container_to_network(
                    container_id, network_id, aliases=aliases
                ),
                deadline=CHANGE,
            )
        except EngineError as problem:
            if "already exists" not in str(problem):
                raise

    def disconnect_network(self, network_id: str, container_id: str) -> None:
        try:
            self._engine.run(
                lambda api: api.disconnect_container_from_network(
                    container_id, network_id, force=True
                ),
                deadline=CHANGE,
            )
        except EngineError as problem:
            if "is not connected" not in str(problem):
                raise

    def create_network(self, request: NetworkRequest) -> str:
        config = network_config(request)
        created = self._engine.run(
            lambda api: api._result(
                api._post_json(api._url("/networks/create"), data=config), True
            ),
            deadline=CHANGE,
        )
        return str(created["Id"])

    def remove_network(self, network_id: str) -> None:
        try:
            self._remove(network_id)
        except EngineError as problem:
            # Connecting a container that is removed meanwhile leaves an endpoint of nobody, which
            # would hold the network for ever.
            if "active endpoints" not in str(problem) or not self._drop_ghosts(network_id):
                raise
            self._remove(network_id)

    def _remove(self, network_id: str) -> None:
        try:
            self._engine.run(lambda api: api.remove_network(network_id), deadline=CHANGE)
        except NotFound:
            return

    def _drop_ghosts(self, network_id: str) -> bool:
        """Whether the network had endpoints of containers that are not there any more."""
        seen = self._engine.run(lambda api: api.inspect_network(network_id))
        listed = self._engine.run(lambda api: api.containers(all=True))
        alive = {name.lstrip("/") for raw in listed for name in raw.get("Names") or ()}
        ghosts = ghost_endpoints(seen, alive)
        for name in ghosts:
            self.disconnect_network(network_id, name)
        return bool(ghosts)


def ghost_endpoints(network: Mapping[str, Any], alive: set[str]) -> tuple[str, ...]:
    """Names of endpoints without a container; one that is just being connected has its own."""
    endpoints: Mapping[str, Mapping[str, Any]] = network.get("Containers") or {}
    names = (
        str(endpoint.get("Name") or "")
        for key, endpoint in endpoints.items()
        if key.startswith(_GHOST)
    )
    return tuple(sorted(name for name in names if name and name not in alive))

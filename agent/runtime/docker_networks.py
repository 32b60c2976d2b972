"""Networks on a Docker engine, addressed by id because names are not unique on older engines."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agent.errors import EngineError, EngineUnavailable, NotFound
from agent.runtime.docker_client import CHANGE, Connections
from agent.runtime.docker_requests import network_config

if TYPE_CHECKING:
    import threading
    from collections.abc import Mapping

    from agent.engine_requests import NetworkRequest

# The engine's key for an endpoint that belongs to no container.
_GHOST = "ep-"


class DockerNetworks:
    """The network part of the port."""

    _engine: Connections
    _making_network: threading.Lock

    def connect_network(
        self, network_id: str, container_id: str, *, alias: str, address: str = ""
    ) -> None:
        try:
            self._engine.run(
                lambda api: api.connect_container_to_network(
                    container_id,
                    network_id,
                    aliases=[alias] if alias else None,
                    ipv4_address=address or None,
                ),
                deadline=CHANGE,
            )
        except EngineError as problem:
            if "already exists" in str(problem):
                return
            if not address:
                raise
            # Somebody else's network without a subnet of its own, or the address is taken.
            self.connect_network(network_id, container_id, alias=alias)

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
        """On a bridge without a wish the engine chooses the subnet, and is told its choice as if
        it were a wish: only such networks can give a container the address it had before."""
        if request.subnet or request.driver != "bridge":
            return self._create(request)
        # One at a time: what one gives back for a moment, the next would be given.
        with self._making_network:
            made = self._create(request)
            subnet = self._subnet(made)
            if not subnet:
                return made
            self.remove_network(made)
            try:
                return self._create(replace(request, subnet=subnet))
            except EngineUnavailable:
                raise
            except EngineError:
                # Taken by somebody else in that moment.
                return self._create(request)

    def _subnet(self, network_id: str) -> str:
        seen = self._engine.run(lambda api: api.inspect_network(network_id))
        pools = (str(pool.get("Subnet") or "") for pool in seen["IPAM"]["Config"] or ())
        return next((pool for pool in pools if "." in pool), "")

    def _create(self, request: NetworkRequest) -> str:
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

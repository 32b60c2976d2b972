"""Networks on a Docker engine, addressed by id because names are not unique on older engines."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agent.errors import EngineError, EngineUnavailable, NotFound
from agent.protocol import naming
from agent.runtime.docker_client import CHANGE, Connections
from agent.runtime.docker_requests import network_config
from agent.runtime.subnets import free_subnet

if TYPE_CHECKING:
    import threading
    from collections.abc import Mapping

    from agent.engine_requests import NetworkRequest

# The engine's key for an endpoint that belongs to no container.
_GHOST = "ep-"


def _cut(request: NetworkRequest, ranges: list[str], used: list[str]) -> NetworkRequest | None:
    subnet, whole = free_subnet(ranges, used, prefix=request.prefix)
    if not subnet:
        return None
    return replace(request, subnet=subnet, labels={**request.labels, naming.LABEL_RANGE: whole})


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
            part = self._part(request) if request.prefix else None
            if part is not None:
                return self._create(part)
            made = self._create(request)
            subnet = self._subnet(made)
            if not subnet:
                return made
            self.remove_network(made)
            told = _cut(request, [subnet], []) if request.prefix else None
            try:
                return self._create(told or replace(request, subnet=subnet))
            except EngineUnavailable:
                raise
            except EngineError:
                # Taken by somebody else in that moment.
                return self._create(request)

    def _part(self, request: NetworkRequest) -> NetworkRequest | None:
        """Cut from the range of its likes, if they have one with room. The engine gives no range
        to anybody else while a part of it is in use."""
        listed = self._engine.run(lambda api: api.networks())
        labels = [raw.get("Labels") or {} for raw in listed]
        signed = naming.LABEL_SIGNATURE
        ranges = [
            str(found[naming.LABEL_RANGE])
            for found in labels
            if naming.LABEL_RANGE in found and found.get(signed) == request.labels.get(signed)
        ]
        used = [
            str(pool.get("Subnet") or "")
            for raw in listed
            for pool in (raw.get("IPAM") or {}).get("Config") or ()
        ]
        return _cut(request, ranges, used)

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

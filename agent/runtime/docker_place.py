"""Whether this process is in its engine's own network, where the bridges of networks come up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agent.errors import GuardError, NotFound
from agent.guard.local import is_engine_here
from agent.host_network.kernel import interface_names
from agent.overseer.own_id import own_container_id
from agent.runtime.docker_client import Connections
from agent.runtime.docker_parse import bridge_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_UNSEEN: Final = "This agent does not see which addresses its engine's machine uses: "
_IN_OWN_NETWORK: Final = _UNSEEN + "its container was made without --network host."
_ELSEWHERE: Final = _UNSEEN + "the engine is not in this machine's own network."


def place_problem(environment: Mapping[str, str]) -> str:
    """Empty when the interfaces and routes seen here are the engine's; else a sentence that says
    why not. Raises EngineError when the engine does not say."""
    engine = Connections(dict(environment))
    own_id = own_container_id()
    if own_id:
        return "" if _shares_network(engine, own_id) else _IN_OWN_NETWORK
    name = str(engine.run(lambda api: api.info()).get("Name") or "")
    try:
        return "" if is_engine_here(environment, name) else _ELSEWHERE
    except GuardError:
        # It is on this machine. Without root its process shows no network, but its bridges do.
        listed = engine.run(lambda api: api.networks())
        return "" if shows_bridge(listed, interface_names()) else _ELSEWHERE


def shows_bridge(listed: Iterable[Mapping[str, Any]], interfaces: frozenset[str]) -> bool:
    return any(name in interfaces for raw in listed if (name := bridge_name(raw)))


def _shares_network(engine: Connections, own_id: str) -> bool:
    """An engine that does not know this container is another one than it runs on."""
    try:
        own: Any = engine.run(lambda api: api.inspect_container(own_id))
    except NotFound:
        return False
    return (own.get("HostConfig") or {}).get("NetworkMode") == "host"

"""The guard of an agent in a container: set by a second one of its image, gone a moment later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agent.errors import EngineError, GuardError, NotFound
from agent.guard.local import LocalGuard, is_engine_here
from agent.overseer.own_id import own_container_id
from agent.protocol.naming import (
    LABEL_AGENT_ROLE,
    LABEL_HOST,
    LABEL_SIGNATURE,
    signature,
    signature_is_valid,
)
from agent.runtime.docker_agent_config import guard_config
from agent.runtime.docker_client import CHANGE, Connections

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.guard.port import Guard
    from agent.store.identity import Identity

# The unique name is the lock: two agents never set the rule at the same moment. With a dot, which
# no workspace's name can have.
GUARD_NAME: Final = "trailer.guard"
_ROLE: Final = "guard"
_TAIL: Final = 5


def find_guard(environment: Mapping[str, str], identity: Identity) -> Guard:
    """How this agent gets at the packet filter of its engine's machine."""
    engine = Connections(dict(environment))
    own_id = own_container_id()
    if own_id:
        return ContainerGuard(engine, identity, own_id=own_id)
    name = str(engine.run(lambda api: api.info()).get("Name") or "")
    if is_engine_here(environment, name):
        return LocalGuard()
    raise GuardError(
        "The metadata addresses cannot be closed to containers: this agent is no container, and "
        "its engine is not in this machine's own network."
    )


class ContainerGuard:
    """Each act is a container that is made, waited for and removed. One that a killed agent left
    behind is removed by the next act, and the next start of the agent is a time for one."""

    def __init__(self, engine: Connections, identity: Identity, *, own_id: str) -> None:
        self._engine = engine
        self._identity = identity
        self._own_id = own_id

    def is_in_place(self) -> None:
        return None

    def put(self) -> None:
        self._perform("on")

    def remove(self) -> None:
        self._perform("off")

    def _perform(self, action: str) -> None:
        self._clear()
        own = self._inspect(self._own_id)
        config = guard_config(own, action, self._labels())
        made: dict[str, Any] = self._engine.run(
            lambda api: api.create_container_from_config(config, name=GUARD_NAME), deadline=CHANGE
        )
        new = str(made["Id"])
        try:
            self._engine.run(lambda api: api.start(new), deadline=CHANGE)
            # Without a word the client would wait for ever, whatever its own deadline is.
            ended = self._engine.run(lambda api: api.wait(new, timeout=CHANGE), deadline=CHANGE)
            if ended["StatusCode"] != 0:
                raise GuardError(self._last_words(new))
        finally:
            self._engine.remove_container(new)

    def _clear(self) -> None:
        try:
            found = self._inspect(GUARD_NAME)
        except NotFound:
            return
        labels = found["Config"].get("Labels") or {}
        identity = self._identity
        ours = labels.get(LABEL_AGENT_ROLE) == _ROLE and signature_is_valid(
            identity.host_key, _ROLE, GUARD_NAME, identity.host_id, labels.get(LABEL_SIGNATURE, "")
        )
        if not ours:
            raise GuardError(
                f"The metadata addresses cannot be closed to containers: the name {GUARD_NAME} "
                f"belongs to container {found['Id'][:12]}, which this agent did not make. "
                "Remove or rename it."
            )
        self._engine.remove_container(str(found["Id"]))

    def _labels(self) -> dict[str, str]:
        identity = self._identity
        mark = signature(identity.host_key, _ROLE, GUARD_NAME, identity.host_id)
        return {
            LABEL_AGENT_ROLE: _ROLE,
            LABEL_HOST: identity.host_id,
            LABEL_SIGNATURE: mark,
        }

    def _last_words(self, container_id: str) -> str:
        try:
            said = bytes(self._engine.run(lambda api: api.logs(container_id, tail=_TAIL)))
        except EngineError:
            said = b""
        words = said.decode(errors="replace").strip()[-500:]
        return words or "The metadata addresses cannot be closed to containers: no reason given."

    def _inspect(self, container_id: str) -> Any:
        return self._engine.run(lambda api: api.inspect_container(container_id))

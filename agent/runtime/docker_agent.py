"""The agents' containers on a Docker engine: what the overseer sees and does there."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any

from agent import clock
from agent.errors import Conflict, EngineError, NotFound, StepFailed
from agent.overseer.port import Pulled
from agent.overseer.source import Source, source_of
from agent.overseer.spawn import Self
from agent.overseer.world import (
    AGENT_NAME,
    NEXT_NAME,
    OVERSEER_NAME,
    PREVIOUS_NAME,
    AgentContainer,
    World,
)
from agent.protocol import image_refs
from agent.protocol.naming import LABEL_AGENT, LABEL_AGENT_ROLE, LABEL_OVERSEER
from agent.runtime.docker_agent_config import (
    agent_config,
    environment_of,
    next_config,
    overseer_config,
)
from agent.runtime.docker_client import CHANGE, Connections
from agent.runtime.docker_disk import DockerDisk
from agent.runtime.docker_images import auth
from agent.runtime.docker_output import pull_output

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.engine_requests import Credential

# Seconds the old agent has to finish its steps and send its reports.
_STOP_GRACE = 30
_TRANSFER = 180
_HEALTH = ["python3", "-m", "agent", "health"]
_TAIL = 5
_TAIL_LENGTH = 600
_NEVER = "0001-01-01T00:00:00Z"


class DockerAgents(DockerDisk):
    def __init__(self, environment: Mapping[str, str]) -> None:
        self._engine = Connections(dict(environment))

    # --- looking ------------------------------------------------------------------------------

    def world(self) -> World:
        agents = [self._seen(raw) for raw in self._listed(f"{LABEL_AGENT}=true")]
        trials = [self._seen(raw) for raw in self._listed(f"{LABEL_AGENT_ROLE}=next")]
        there = [agent for agent in agents if agent is not None]
        previous = next((agent for agent in there if agent.name == PREVIOUS_NAME), None)
        others = [agent for agent in there if agent.name != PREVIOUS_NAME]
        named = [agent for agent in others if agent.name == AGENT_NAME]
        return World(
            # One that a person named differently counts when it is the only one.
            current=named[0] if named else others[0] if len(others) == 1 else None,
            previous=previous,
            next=next((t for t in trials if t is not None and t.name == NEXT_NAME), None),
        )

    def check_names(self) -> None:
        """Before anything is stopped: the old agent could not come back under a taken name."""
        ours = {str(raw["Id"]) for raw in self._listed(f"{LABEL_AGENT}=true")}
        ours |= {str(raw["Id"]) for raw in self._listed(f"{LABEL_AGENT_ROLE}=next")}
        for name in (AGENT_NAME, NEXT_NAME, PREVIOUS_NAME):
            try:
                holder = str(self._inspect(name)["Id"])
            except NotFound:
                continue
            if holder not in ours:
                raise Conflict(
                    f"The name {name} belongs to container {holder[:12]}, which is not an agent "
                    "of Trailer. Rename it, so that the agent can be replaced."
                )

    def _listed(self, label: str) -> list[Mapping[str, Any]]:
        found: list[Mapping[str, Any]] = self._engine.run(
            lambda api: api.containers(all=True, filters={"label": label})
        )
        return found

    def _seen(self, listed: Mapping[str, Any]) -> AgentContainer | None:
        try:
            raw = self._inspect(str(listed["Id"]))
        except NotFound:
            return None
        state, config = raw["State"], raw["Config"]
        return AgentContainer(
            id=str(raw["Id"]),
            name=str(raw["Name"]).lstrip("/"),
            running=bool(state.get("Running")) or state.get("Status") == "restarting",
            image=str(config["Image"]),
            made_by=(config.get("Labels") or {}).get(LABEL_OVERSEER, ""),
            ever_started=str(state.get("StartedAt") or _NEVER) != _NEVER,
        )

    def describe(self, container_id: str) -> Self:
        raw = self._inspect(container_id)
        return Self(
            id=str(raw["Id"]),
            image=str(raw["Config"]["Image"]),
            image_id=str(raw["Image"]),
            labels=raw["Config"].get("Labels") or {},
            environment=environment_of(raw["Config"]),
        )

    def is_up(self, container_id: str) -> bool:
        return bool(self._inspect(container_id)["State"].get("Running"))

    def exit_code(self, container_id: str) -> int | None:
        state = self._inspect(container_id)["State"]
        # One that restarts keeps the code of its newest end, but counts as running.
        over = not state.get("Running") or state.get("Status") == "restarting"
        started = str(state.get("StartedAt") or _NEVER) != _NEVER
        return int(state.get("ExitCode") or 0) if over and started else None

    def is_healthy(self, container_id: str) -> bool:
        """Asked in the container itself: the engine's own check comes only twice a minute."""
        try:
            if not self.is_up(container_id):
                return False
            made = self._engine.run(lambda api: api.exec_create(container_id, _HEALTH))
            self._engine.run(lambda api: api.exec_start(made["Id"]))
            seen = self._engine.run(lambda api: api.exec_inspect(made["Id"]))
        except (NotFound, Conflict):
            return False
        except EngineError as problem:
            # It ended in between, or has no Python at all.
            if "is not running" in str(problem) or "OCI runtime" in str(problem):
                return False
            raise
        return bool(seen.get("ExitCode") == 0)

    def log_tail(self, container_id: str) -> str:
        try:
            raw = self._engine.run(lambda api: api.logs(container_id, tail=_TAIL))
        except EngineError:
            return ""
        return bytes(raw).decode(errors="replace").strip()[-_TAIL_LENGTH:]

    # --- images -------------------------------------------------------------------------------

    def pull(self, image: str, credential: Credential | None) -> Pulled:
        if source_of(image) is not Source.REGISTRY:
            raise StepFailed(f"{image} names no registry, so it is not pulled.")
        repository, tag = image_refs.pull_parts(image)
        client = self._engine.own_client(_TRANSFER)
        problem = ""
        try:
            raw = self._engine.run(
                lambda _: client.pull(
                    repository, tag=tag, stream=True, decode=True, auth_config=auth(credential)
                ),
            )
            problem = next((line.error for line in pull_output(raw) if line.error), "")
        except EngineError as refused:
            problem = str(refused)
        finally:
            client.close()
        try:
            return Pulled(image_id=self.image_id(image), problem=problem)
        except NotFound:
            raise NotFound(f"The image {image} could not be pulled: {problem}") from None

    def image_id(self, image: str) -> str:
        return str(self._engine.run(lambda api: api.inspect_image(image))["Id"])

    def architecture(self) -> str:
        return str(self._engine.run(lambda api: api.version())["Arch"])

    def load(self, archive: IO[bytes]) -> None:
        client: Any = self._engine.own_client(_TRANSFER)
        try:
            said = self._engine.run(lambda _: list(client.load_image(archive)))
        finally:
            client.close()
        problem = next((str(line["error"]) for line in said if line.get("error")), "")
        if problem:
            raise EngineError(f"The engine did not take the archive: {problem}")

    # --- changing -----------------------------------------------------------------------------

    def create_next(self, like: str, image: str) -> None:
        container, base = self._pattern(like)
        self._create(NEXT_NAME, next_config(container, base, reference=image))

    def create_current(self, like: str, image: str, *, made_by: str) -> None:
        container, base = self._pattern(like)
        config, networks = agent_config(
            container, base, reference=image, created_at=clock.timestamp(), made_by=made_by
        )
        made = self._create(AGENT_NAME, config)
        for name, endpoint in networks.items():
            self._connect(made, name, endpoint)

    def _connect(self, container_id: str, network: str, endpoint: Mapping[str, Any]) -> None:
        """By hand: the client's own call knows only some of an endpoint's settings."""
        data = {"Container": container_id, "EndpointConfig": endpoint}
        self._engine.run(
            lambda api: api._raise_for_status(
                api._post_json(api._url("/networks/{0}/connect", network), data=data)
            ),
            deadline=CHANGE,
        )

    def spawn(self, like: str) -> bool:
        container, base = self._pattern(like)
        try:
            made = self._create(OVERSEER_NAME, overseer_config(container, base))
        except Conflict:
            return False
        self.start(made)
        return True

    def start(self, container_id: str) -> None:
        self._engine.run(lambda api: api.start(container_id), deadline=CHANGE)

    def stop(self, container_id: str) -> None:
        self._engine.run(lambda api: api.stop(container_id, timeout=_STOP_GRACE), deadline=15)

    def rename(self, container_id: str, name: str) -> None:
        self._engine.run(lambda api: api.rename(container_id, name), deadline=CHANGE)

    def remove(self, container_id: str) -> None:
        """Its volumes stay: they hold the agent's identity."""
        self._engine.remove_container(container_id)

    # --- the overseer's own container ---------------------------------------------------------

    def overseer_state(self) -> str:
        for listed in self._listed(f"{LABEL_AGENT_ROLE}=overseer"):
            seen = self._seen(listed)
            if seen is not None and seen.name == OVERSEER_NAME:
                return "running" if seen.running else "ended"
        return ""

    def remove_overseer(self) -> None:
        for listed in self._listed(f"{LABEL_AGENT_ROLE}=overseer"):
            seen = self._seen(listed)
            if seen is not None and seen.name == OVERSEER_NAME and not seen.running:
                self.remove(seen.id)

    def _pattern(self, container_id: str) -> tuple[Any, Any]:
        container = self._inspect(container_id)
        image = self._engine.run(lambda api: api.inspect_image(container["Image"]))
        return container, image

    def _inspect(self, container_id: str) -> Any:
        return self._engine.run(lambda api: api.inspect_container(container_id))

    def _create(self, name: str, config: Mapping[str, Any]) -> str:
        made = self._engine.run(
            lambda api: api.create_container_from_config(config, name=name), deadline=CHANGE
        )
        return str(made["Id"])

"""A model of an engine with the containers of an agent, that can be cut off at any call.

What it knows of Docker: unique names, restart policies, and that a container which was stopped by
a call is not started again by the engine. Images are words: `good`, `crash`, `hang`, `mute` (runs,
but never reaches the server), `late` (proves itself in the trial, fails afterwards).
"""

from __future__ import annotations

import contextlib
import errno
from dataclasses import dataclass, field
from itertools import count
from typing import IO, TYPE_CHECKING, TypeVar

from agent.engine_requests import Credential
from agent.errors import Conflict, NotFound
from agent.overseer.order import Order
from agent.overseer.port import Pulled
from agent.overseer.run import Overseer, Pace
from agent.overseer.spawn import Self
from agent.overseer.world import (
    AGENT_NAME,
    NEXT_NAME,
    OVERSEER_NAME,
    PREVIOUS_NAME,
    AgentContainer,
    World,
)
from agent.protocol.naming import LABEL_CREATED_AT

if TYPE_CHECKING:
    from collections.abc import Callable

LOGIN = Credential(server="registry.example.com", username="fleet", password="open sesame")

T = TypeVar("T")


class Killed(BaseException):
    """The overseer's process is gone; no handler of its own may run."""


@dataclass
class Container:
    id: str
    name: str
    image: str
    image_id: str
    running: bool = False
    ever_started: bool = False
    stopped_by_call: bool = False
    made_by: str = ""

    def works(self) -> bool:
        return self.running and self.image == "good"


@dataclass
class Engine:
    """`cut` is asked before and after each changing call and may raise. `pushed`: what a registry,
    or the server for names without one, has under a name, by id; other names are of images that
    were built here."""

    images: set[str] = field(default_factory=lambda: {"good", "crash", "hang", "mute", "late"})
    cut: Callable[[str, str], None] = lambda call, when: None
    ids: dict[str, str] = field(default_factory=dict)
    pushed: dict[str, str] = field(default_factory=dict)
    is_registry_away: bool = False
    calls: list[str] = field(default_factory=list)
    logins: list[Credential | None] = field(default_factory=list)
    loaded: list[bytes] = field(default_factory=list)
    containers: dict[str, Container] = field(default_factory=dict)
    now: float = 0.0
    # The order that the newest overseer said it had fulfilled.
    answered: int = 0
    _ids: count[int] = field(default_factory=count)

    def add(self, name: str, image: str, *, running: bool = True, made_by: str = "") -> Container:
        number = f"c{next(self._ids)}"
        its = self.image_id(image)
        made = Container(number, name, image, its, running, running, made_by=made_by)
        self.containers[made.id] = made
        return made

    def named(self, name: str) -> Container | None:
        return next((c for c in self.containers.values() if c.name == name), None)

    def daemon_restarts(self) -> None:
        """Without live restore: everything ends, and policies start it again."""
        for container in self.containers.values():
            policy = container.name not in (NEXT_NAME, OVERSEER_NAME)
            was = container.running
            container.running = was and policy and not container.stopped_by_call

    # --- the port -----------------------------------------------------------------------------

    def world(self) -> World:
        def seen(name: str) -> AgentContainer | None:
            found = self.named(name)
            if found is None:
                return None
            return AgentContainer(
                id=found.id,
                name=found.name,
                running=found.running,
                image=found.image,
                made_by=found.made_by,
                ever_started=found.ever_started,
            )

        return World(current=seen(AGENT_NAME), previous=seen(PREVIOUS_NAME), next=seen(NEXT_NAME))

    def check_names(self) -> None:
        pass

    def describe(self, container_id: str) -> Self:
        found = self.containers[container_id]
        labels = {LABEL_CREATED_AT: "then"} if found.made_by else {}
        return Self(id=found.id, image=found.image, image_id=found.image_id, labels=labels)

    def pull(self, image: str, credential: Credential | None) -> Pulled:
        self.logins.append(credential)

        def act() -> Pulled:
            problem = "no such host"
            if not self.is_registry_away and image in self.pushed:
                self.ids[image], problem = self.pushed[image], ""
            return Pulled(image_id=self.image_id(image), problem=problem)

        return self._call("pull", act)

    def load_image(self, image: str) -> str:
        """As the server hands it out; why not."""

        def act() -> str:
            if self.is_registry_away or image not in self.pushed:
                return "no such archive"
            self.ids[image] = self.pushed[image]
            return ""

        return self._call("load", act)

    def architecture(self) -> str:
        return "amd64"

    def load(self, archive: IO[bytes]) -> None:
        self.loaded.append(archive.read())

    def image_id(self, image: str) -> str:
        if image not in self.images:
            raise NotFound(f"no image {image}")
        return self.ids.get(image, f"id of {image}")

    def create_next(self, like: str, image: str) -> None:
        self._call("create next", lambda: self._create(NEXT_NAME, image, ""))

    def create_current(self, like: str, image: str, *, made_by: str) -> None:
        self._call("create current", lambda: self._create(AGENT_NAME, image, made_by))

    def _create(self, name: str, image: str, made_by: str) -> None:
        if self.named(name):
            raise Conflict(f"the name {name} is taken")
        self.add(name, image, running=False, made_by=made_by)

    def start(self, container_id: str) -> None:
        def act() -> None:
            found = self._there(container_id)
            found.running, found.ever_started, found.stopped_by_call = True, True, False
            if found.image == "crash":
                found.running = False

        self._call("start", act)

    def stop(self, container_id: str) -> None:
        def act() -> None:
            found = self._there(container_id)
            found.running, found.stopped_by_call = False, True

        self._call("stop", act)

    def rename(self, container_id: str, name: str) -> None:
        def act() -> None:
            if self.named(name):
                raise Conflict(f"the name {name} is taken")
            self._there(container_id).name = name

        self._call("rename", act)

    def remove(self, container_id: str) -> None:
        self._call("remove", lambda: self.containers.pop(container_id, None))

    def is_healthy(self, container_id: str) -> bool:
        found = self._there(container_id)
        trial = found.image == "late" and found.name == NEXT_NAME
        return found.running and (found.image == "good" or trial)

    def is_up(self, container_id: str) -> bool:
        return self._there(container_id).running

    def exit_code(self, container_id: str) -> int | None:
        found = self._there(container_id)
        return 3 if found.ever_started and not found.running else None

    def log_tail(self, container_id: str) -> str:
        return "first line\nlast line"

    def spawn(self, like: str) -> bool:
        if self.named(OVERSEER_NAME):
            return False
        self.add(OVERSEER_NAME, "good")
        return True

    def disk_report(self) -> str:
        return ""

    def prune_images(self) -> str:
        return ""

    def overseer_state(self) -> str:
        found = self.named(OVERSEER_NAME)
        return "" if found is None else "running" if found.running else "ended"

    def remove_overseer(self) -> None:
        found = self.named(OVERSEER_NAME)
        if found is not None and not found.running:
            del self.containers[found.id]

    def _there(self, container_id: str) -> Container:
        if container_id not in self.containers:
            raise NotFound("no such container")
        return self.containers[container_id]

    def _call(self, name: str, act: Callable[[], T]) -> T:
        self.cut(name, "before")
        result = act()
        self.calls.append(name)
        self.cut(name, "after")
        return result


class EnoughPauses(BaseException):
    """The test has seen as many pauses as it wanted."""


def oversee(
    engine: Engine,
    *,
    own_id: str = "overseer",
    wanted: Callable[[], str | Order | None] = lambda: "good",
    pauses: list[float] | None = None,
    most_pauses: int = 3,
    disk_is_full: bool = False,
) -> list[str]:
    """Run one process of the overseer to its end, or until it has paused that often; what it told
    about failures."""
    told: list[str] = []
    begun: list[float] = pauses if pauses is not None else []

    def sleep(seconds: float) -> None:
        engine.now += seconds

    def tell(image: str, message: str, order: int) -> None:
        told.append(message)
        engine.answered = order if not message else 0
        if disk_is_full:
            raise OSError(errno.ENOSPC, "No space left on device")

    def order() -> Order | None:
        found = wanted()
        return Order(image=found) if isinstance(found, str) else found

    class Watched(Overseer):
        def _pause(self) -> None:
            if len(begun) >= most_pauses:
                raise EnoughPauses
            at = engine.now
            super()._pause()
            begun.append(engine.now - at)

    overseer = Watched(
        engine,
        own_id=own_id,
        wanted=order,
        login=lambda image: LOGIN if image.startswith(LOGIN.server) else None,
        load=engine.load_image,
        tell=tell,
        pace=Pace(sleep=sleep, now=lambda: engine.now),
    )
    with contextlib.suppress(EnoughPauses):
        overseer.run()
    return told

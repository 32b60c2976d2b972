"""The overseer's life: decide, act, look again; it ends only when the work is done."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from agent import clock
from agent.errors import AgentError, NotFound, StepFailed
from agent.overseer.decide import after, decide, pause_seconds
from agent.overseer.order import Order
from agent.overseer.port import Pulled
from agent.overseer.source import Source, source_of
from agent.overseer.spawn import difference
from agent.overseer.world import AGENT_NAME, PREVIOUS_NAME, Act, AgentContainer, Memory, World
from agent.protocol.redaction import redacted

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.engine_requests import Credential
    from agent.overseer.port import AgentEngine

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Pace:
    """Seconds. `slice`: how often a pause looks whether the server wants another image now."""

    patience: float = 120.0
    look: float = 1.0
    slice: float = 5.0
    sleep: Callable[[float], None] = field(default=clock.sleep)
    now: Callable[[], float] = field(default=clock.monotonic)
    first_pause: float = 10.0


class Overseer:
    """`wanted` asks the server for its order anew, None when nobody knows; `login` for what opens
    the image's registry; `load` brings an image that no registry has from the server, and returns
    why it could not; `tell` gets one sentence about each failure, empty when all is well, and
    the number of the order that it is about."""

    def __init__(
        self,
        engine: AgentEngine,
        *,
        own_id: str,
        wanted: Callable[[], Order | None],
        login: Callable[[str], Credential | None],
        load: Callable[[str], str],
        tell: Callable[[str, str, int], None],
        pace: Pace,
    ) -> None:
        self._engine = engine
        self._wanted = wanted
        self._login = login
        self._load = load
        self._tell = tell
        self._pace = pace
        self._memory = Memory(own_id=own_id)
        self._order = Order()
        self._image = ""
        self._image_id = ""

    def run(self) -> None:
        while (act := self._next()) not in (Act.FINISH, Act.GIVE_UP):
            self._take(act)
        if act is Act.FINISH:
            self._say("", "")
        log.info("done" if act is Act.FINISH else "there is no agent to replace")

    def _next(self) -> Act:
        """An engine that does not answer is asked again for ever: nothing else can be done."""
        while True:
            try:
                world = self._engine.world()
                return decide(world, self._memory, is_needed=self._is_needed(world))
            except AgentError as problem:
                log.warning("the engine cannot be looked at: %s", problem)
                self._pace.sleep(self._pace.slice)

    def _is_needed(self, world: World) -> bool:
        if world.current is None or not self._memory.failures:
            return True
        order = self._wanted() or self._order
        differs = difference(self._engine.describe(world.current.id), order.image)
        if not order.number and not differs:
            # Taken back: nobody may say that it was fulfilled.
            self._order = order
            return False
        return True

    def _take(self, act: Act) -> None:
        if act is Act.PAUSE:
            self._pause()
            self._memory = after(self._memory, act, succeeded=True)
            return
        log.info("%s", act.name.lower().replace("_", " "))
        try:
            self._do(act, self._engine.world())
        except AgentError as problem:
            log.warning("%s failed: %s", act.name.lower().replace("_", " "), problem)
            self._memory = after(self._memory, act, succeeded=False)
            self._say(self._image, str(problem))
            return
        self._memory = after(self._memory, act, succeeded=True)

    def _say(self, image: str, message: str) -> None:
        """On a full disk nobody hears it; the way back goes on, which this process alone knows."""
        try:
            self._tell(image, message, self._order.number)
        except OSError as problem:
            log.warning("the outcome could not be written down: %s", problem)

    def _do(self, act: Act, world: World) -> None:
        engine = self._engine
        match act:
            case Act.PULL:
                engine.check_names()
                self._pull(_there(world.current))
            case Act.CREATE_NEXT:
                engine.create_next(_there(world.current).id, self._image)
            case Act.WATCH_NEXT:
                self._watch(_there(world.next), ends=True)
            case Act.STOP_CURRENT:
                engine.stop(_there(world.current).id)
            case Act.RENAME_TO_PREVIOUS:
                engine.rename(_there(world.current).id, PREVIOUS_NAME)
            case Act.CREATE_CURRENT:
                self._create_current(_there(world.previous).id)
            case Act.WATCH_CURRENT:
                self._watch(_there(world.current), ends=False)
            case Act.RENAME_BACK:
                engine.rename(_there(world.previous).id, AGENT_NAME)
            case Act.START_NEXT:
                engine.start(_there(world.next).id)
            case Act.START_CURRENT:
                engine.start(_there(world.current).id)
            case _:
                engine.remove(_there(_removed(act, world)).id)

    def _pull(self, current: AgentContainer) -> None:
        self._order = self._wanted() or self._order
        self._image = self._order.image or current.image
        pulled = self._fetched(self._image)
        self._image_id = pulled.image_id
        own = self._engine.describe(current.id)
        is_there = own.image_id == pulled.image_id and not difference(own, self._order.image)
        if self._order.number and is_there and pulled.problem:
            raise StepFailed(
                f"The image {self._image} could not be fetched, and the agent runs the one that "
                f"is here already: {pulled.problem}"
            )
        self._memory = replace(self._memory, fulfilled=bool(self._order.number) and is_there)

    def _fetched(self, image: str) -> Pulled:
        source = source_of(image)
        if source is Source.REGISTRY:
            return self._engine.pull(image, self._login(image))
        problem = self._load(image) if source is Source.SERVER else ""
        try:
            found = self._engine.image_id(image)
        except NotFound:
            raise NotFound(f"The image {image} is not on this host. {problem}".strip()) from None
        if problem:
            log.warning("the image that is here is used: %s", problem)
        return Pulled(image_id=found, problem=problem)

    def _create_current(self, like: str) -> None:
        """Only what was proved: a name may mean another image by now."""
        if self._engine.image_id(self._image) != self._image_id:
            raise StepFailed(f"The image {self._image} changed while it was tried out.")
        self._engine.create_current(like, self._image, made_by=self._memory.own_id)

    def _watch(self, container: AgentContainer, *, ends: bool) -> None:
        """Until it is healthy. The trial's container `ends` for good when it ends."""
        deadline = self._pace.now() + self._pace.patience
        while not self._engine.is_healthy(container.id):
            over = ends and not self._engine.is_up(container.id)
            if over or self._pace.now() >= deadline:
                raise StepFailed(self._failure_of(container.id, is_over=over))
            self._pace.sleep(self._pace.look)

    def _failure_of(self, container_id: str, *, is_over: bool) -> str:
        """What became of a new agent: its exit code, and its last lines."""
        code = self._engine.exit_code(container_id)
        tail = redacted(self._engine.log_tail(container_id))
        how = "" if is_over else f" is not healthy after {self._pace.patience:g} seconds"
        if code is not None:
            how += f"{' and' if how else ''} ended with exit code {code}"
        lines = f" Its last lines: {tail}" if tail else " It wrote nothing."
        return f"The new agent ({self._image}){how or ' ended'}.{lines}"

    def _pause(self) -> None:
        scale = self._pace.first_pause / pause_seconds(1)
        seconds = pause_seconds(self._memory.failures) * scale
        log.info("next try in %g seconds; the agent goes on meanwhile", seconds)
        until = self._pace.now() + seconds
        while (left := until - self._pace.now()) > 0:
            self._pace.sleep(min(left, self._pace.slice))
            if self._image and (self._wanted() or self._order) != self._order:
                log.info("the server wants something else now")
                return


def _removed(act: Act, world: World) -> AgentContainer | None:
    if act is Act.REMOVE_CURRENT:
        return world.current
    return world.previous if act is Act.REMOVE_PREVIOUS else world.next


def _there(container: AgentContainer | None) -> AgentContainer:
    """Gone since it was looked at: another try will see what is left."""
    if container is None:
        raise StepFailed("A container vanished while it was being replaced.")
    return container

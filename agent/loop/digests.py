"""The update watch: compares images of policy `always` with their registry, on a timer and on
demand. It never holds a cycle back, and makes no engine call while nothing is due."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent import clock
from agent.diff.images import credential_for, digest_of
from agent.errors import (
    EngineError,
    EngineUnavailable,
    FetchCancelled,
    NotFound,
    RegistryRefused,
)
from agent.fetch.cancellation import Cancellation
from agent.plan import ImageCheck
from agent.protocol import image_refs
from agent.protocol.registries import rule_for

if TYPE_CHECKING:
    from agent.apply.reporter import Reporter
    from agent.fetch.registry import RegistryCheck
    from agent.loop.target import Target
    from agent.observed import ObservedImage
    from agent.protocol.state import DesiredImage, HostState
    from agent.runtime.port import Runtime
    from agent.work.works import Works

log = logging.getLogger(__name__)

# How many registries are asked at once: one that hangs must not hold up all others.
_AT_ONCE = 4
# A thousand agents that start together do not ask one registry in the same second.
_FIRST_WITHIN = 3.0
# After an engine that did not answer: that says nothing about a registry.
_AGAIN_AFTER = 10.0
_LONGEST_WAIT = 3600.0


@dataclass
class _Watched:
    """What is known of one image: which look was asked for last, and when the next one is due."""

    revision: int
    check: int
    due_at: float
    looked_at: float | None = None


class DigestWatch:
    def __init__(
        self,
        *,
        runtime: Runtime,
        target: Target,
        reporter: Reporter,
        works: Works,
        registries: RegistryCheck,
    ) -> None:
        self._runtime = runtime
        self._target = target
        self._reporter = reporter
        self._works = works
        self._registries = registries
        self._cancellation = Cancellation()
        self._wake = threading.Event()
        self._lock = threading.Lock()
        self._watched: dict[str, _Watched] = {}
        self._under_way: set[str] = set()
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="digest")

    def wake(self) -> None:
        """The document or the settings changed."""
        self._wake.set()

    def look_at_all(self) -> None:
        """Now, whatever the interval says."""
        with self._lock:
            for watched in self._watched.values():
                watched.due_at = clock.monotonic()
        self._wake.set()

    def run(self, stop: threading.Event) -> None:
        while not stop.is_set():
            self._wake.clear()
            for image in self.due():
                self._pool.submit(self._look, image)
            self._wake.wait(self._until_next())
        self._cancellation.cancel()
        self._pool.shutdown(wait=False, cancel_futures=True)

    # --- when ---

    def due(self) -> list[DesiredImage]:
        """Images whose turn it is; they count as under way from here on."""
        state = self._target.state()
        if state is None or not state.settings.enabled:
            return []
        now, busy = clock.monotonic(), self._works.running_builds()
        with self._lock:
            self._follow(state, now)
            ready = [
                image
                for image in state.images
                if image.id in self._watched
                and self._watched[image.id].due_at <= now
                and image.id not in self._under_way
                and image.id not in busy
            ]
            self._under_way |= {image.id for image in ready}
        return ready

    def _follow(self, state: HostState, now: float) -> None:
        """Take new wishes over; what is not watched any more is forgotten."""
        wanted = {image.id: image for image in state.images if is_watched(image)}
        for image_id in set(self._watched) - set(wanted):
            del self._watched[image_id]
            self._reporter.forget_check(image_id)
        interval = state.settings.update_interval
        for image in wanted.values():
            known = self._watched.get(image.id)
            if known is None:
                first = now + clock.full_jitter(min(_FIRST_WITHIN, interval))
                self._watched[image.id] = _Watched(image.revision, image.check, first)
            elif (image.revision, image.check) != (known.revision, known.check):
                known.revision, known.check, known.due_at = image.revision, image.check, now
            elif known.looked_at is not None:
                # A setting that changed counts from the last look.
                known.due_at = min(known.due_at, known.looked_at + interval)

    def _until_next(self) -> float:
        now = clock.monotonic()
        with self._lock:
            times = [w.due_at for i, w in self._watched.items() if i not in self._under_way]
        # One that is due but busy is looked at again soon.
        return max(0.5, min([at - now for at in times], default=_LONGEST_WAIT))

    # --- one look ---

    def _look(self, image: DesiredImage) -> None:
        interval, again = self._target.settings().update_interval, 0.0
        try:
            check = self.look(image)
            self._reporter.checked(check)
        except EngineError as problem:
            log.info("image %r was not compared: %s", image.name, problem)
            again = min(_AGAIN_AFTER, interval)
        except FetchCancelled:
            # The agent stops.
            return
        except Exception:
            # The thread belongs to a pool: without this line a bug would vanish in a future.
            log.exception("image %r could not be compared", image.name)
        now = clock.monotonic()
        with self._lock:
            self._under_way.discard(image.id)
            known = self._watched.get(image.id)
            if known and (known.revision, known.check) == (image.revision, image.check):
                known.looked_at = now - interval + again if again else now
                known.due_at = now + (again or interval)
        self._wake.set()

    def look(self, image: DesiredImage) -> ImageCheck:
        """Raises EngineError only when the engine itself does not answer, and FetchCancelled when
        the agent stops."""
        held = self._held(image)
        available = message = ""
        state = self._target.state()
        try:
            rule = rule_for(state, image) if state else None
            self._registries.reference(image.ref, rule, self._cancellation, blobs=False)
            available = self._runtime.registry_digest(
                image.ref, credential_for(image.ref, image.credential)
            )
        except RegistryRefused as problem:
            message = f"{image.ref} stays as it is. {problem}"
        except EngineUnavailable:
            server = image_refs.server_of(image.ref)
            message = (
                f"The registry {server} did not answer in time, so {image.ref} stays as it is."
            )
        except EngineError as problem:
            message = f"{image.ref} could not be compared with its registry: {problem}"
        return ImageCheck(
            image_id=image.id,
            present=held is not None,
            engine_id=held.id if held else "",
            digest=digest_of(held, image.ref) if held else "",
            size_bytes=held.size_bytes if held else None,
            available_digest=available,
            message=message,
        )

    def _held(self, image: DesiredImage) -> ObservedImage | None:
        """What the image stands for: the engine id that the server keeps for it, and only without
        that what its tag means, which a pull of another image may have moved."""
        for ref in (*(image.keep or ()), image.ref):
            try:
                return self._runtime.inspect_image(ref)
            except NotFound:
                continue
        return None


def is_watched(image: DesiredImage) -> bool:
    """A digest never moves; a pull under way will tell by itself."""
    follows = image.kind == "pull" and image.update_policy == "always" and image.enabled
    return (
        follows
        and not image_refs.is_pinned(image.ref)
        and (image.build is None or image.build.done)
    )

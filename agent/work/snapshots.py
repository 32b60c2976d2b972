"""One snapshot from start to verified end; runs in a worker thread of `works`.

A commit outlives its caller, and one that is cut off leaves the container paused. So the image is
looked for before it is made, and the container is never left paused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent import clock
from agent.engine_requests import CommitRequest
from agent.errors import AgentError, EngineError, EngineUnavailable, NotFound, StepFailed
from agent.protocol import naming
from agent.protocol.counting import counted
from agent.steps import SnapshotImage
from agent.work.detached import Detached
from agent.work.long_work import LongWork

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.observed import ObservedImage
    from agent.protocol.report import BuildStatus
    from agent.runtime.port import Runtime

_POLL = 0.25
# After its image is there, the engine wakes the container by itself.
_WAKE_PATIENCE = 5.0


class Interrupted(AgentError):
    """Neither made nor refused: to be tried again, by this agent or the next one."""


class SnapshotWork(LongWork[SnapshotImage]):
    """`cancel` lets the container run again at once; what the engine still makes is removed."""

    lane = "snapshot"

    def __init__(
        self,
        step: SnapshotImage,
        runtime: Runtime,
        *,
        timeout: float,
        write: Callable[[str], None],
        on_progress: Callable[[BuildStatus], None],
    ) -> None:
        super().__init__(step, runtime, timeout=timeout, write=write, on_progress=on_progress)
        self._deadline = 0.0
        self._reason = "cancel requested" if step.cancelled else ""
        self._leaving = False
        self._said = ""
        # The engine was seen at it. It recalls only its newest events: the health checks of other
        # containers may push the pause out while the commit goes on.
        self._was_recalled = False
        self._holds_workspace = True

    # --- from other threads ---

    @property
    def is_urgent(self) -> bool:
        """What a dead agent began may have left the container paused."""
        return self.step.resumed

    def claims(self) -> tuple[str, ...]:
        return self.step.claims if self._holds_workspace else (self.step.key,)

    def cancel(self, reason: str) -> None:
        self._reason = self._reason or reason
        self._wake_container()
        # From here on the workspace may be changed or removed: the image is of no use any more.
        self._holds_workspace = False

    def leave(self) -> None:
        """The agent stops. The engine goes on, and the next agent looks for what it made."""
        self._leaving = True

    # --- the work ---

    def run(self) -> BuildStatus | None:
        """None: it was left in the middle and has no end yet."""
        self._deadline = clock.monotonic() + self._timeout
        try:
            self._on_progress(self._status("building"))
            if self.step.cancelled:
                self.cancel(self._reason)
            image = self._make()
        except Interrupted as problem:
            self._write(f"{problem}\n")
            return None
        except EngineUnavailable as problem:
            if self._reason:
                return self._failed(str(problem))
            # What was made so far is found when the engine is back.
            self._say_once(str(problem))
            return None
        except AgentError as problem:
            return self._failed(str(problem))
        if self._reason:
            return self._failed("")
        self.made_id = image.id
        self._write(f"Done: {image.id}, {image.size_bytes} bytes\n")
        return self._finished(image)

    def _make(self) -> ObservedImage:
        found = self._await_outcome() if self.step.resumed else None
        if self._reason:
            raise StepFailed("Cancelled.")
        if found is None:
            self._check()
            self._clear()
            self._commit()
            found = self._await_outcome()
        if self._reason:
            raise StepFailed("Cancelled.")
        if found is None:
            raise Interrupted("The engine was interrupted before the image was made.")
        return self._kept()

    def _check(self) -> None:
        container_id, name = self.step.container_id, self.step.workspace_name
        try:
            container = self._runtime.inspect_container(container_id) if container_id else None
        except NotFound:
            container = None
        if container is None or container.state != "running":
            raise StepFailed(f"Workspace {name} is not running, so there is nothing to commit.")

    def _commit(self) -> None:
        """Ends with the call, with the time there is for it, or when the engine is gone; what came
        of it is another question."""
        step = self.step
        request = CommitRequest(
            container_id=step.container_id,
            ref=self._commit_ref,
            labels=step.labels,
            blank_env=step.blank_env,
            patience=self._timeout,
        )
        self._write(f"Committing container {step.container_id[:12]}\n")
        commit = Detached(
            lambda: self._runtime.commit_container(request), name=f"commit-{step.build_id[:8]}"
        )
        while not commit.wait(_POLL):
            self._raise_if_leaving()
            if self.is_cancelled:
                # The cancel may have come just before the engine paused it.
                self._wake_container()
            if clock.monotonic() >= self._deadline:
                return
        try:
            commit.result()
        except EngineUnavailable as problem:
            self._say_once(str(problem))

    def _await_outcome(self) -> ObservedImage | None:
        """The image, or None once it is certain that nobody makes one."""
        while True:
            self._raise_if_leaving()
            try:
                found = self._made()
                if found is not None:
                    self._await_wake()
                    return found
                if not self._is_under_way():
                    # The engine tags first and wakes the container then.
                    return self._made()
            except EngineUnavailable as problem:
                self._was_recalled = False
                self._say_once(str(problem))
            if clock.monotonic() >= self._deadline:
                self._wake_container()
                raise StepFailed(
                    "The engine did not finish the snapshot within "
                    f"{counted(self._timeout, 'second')}, "
                    "the host's limit."
                )
            clock.sleep(_POLL)

    def _is_under_way(self) -> bool:
        if not self.step.container_id:
            return False
        try:
            container = self._runtime.inspect_container(self.step.container_id)
        except NotFound:
            return False
        if container.state != "paused":
            return False
        recalled = self._runtime.recalls_pause(container.id)
        if recalled is not None:
            self._was_recalled = recalled
        if not self._was_recalled:
            self._wake_container()
        return self._was_recalled

    def _made(self) -> ObservedImage | None:
        """Sealed or only committed; None unless this very try made it."""
        return self._made_at(self.step.ref) or self._made_at(self._commit_ref)

    def _made_at(self, ref: str) -> ObservedImage | None:
        image = self._image(ref)
        if image is None or image.labels.get(naming.LABEL_IMAGE) != self.step.image_id:
            return None
        return image if image.labels.get(naming.LABEL_BUILD) == self.step.build_id else None

    # --- from committed to kept ---

    @property
    def _commit_ref(self) -> str:
        return naming.commit_ref(self.step.ref, self.step.build_id)

    def _kept(self) -> ObservedImage:
        """Under the image's own name. The engine keeps the container's whole environment beside a
        committed image: with secrets in it a copy without that is kept, and the first one goes."""
        step, committed = self.step, self._commit_ref
        if self._made_at(step.ref) is None:
            name = self._runtime.seal_image if step.blank_env else self._runtime.tag_image
            name(committed, step.ref)
        self._runtime.remove_image(committed)
        self._clear_unnamed()
        return self._runtime.inspect_image(step.ref)

    # --- ends ---

    def _failed(self, problem: str) -> BuildStatus:
        status, message = "failed", problem
        if self._reason:
            status, message = "cancelled", f"Cancelled: {self._reason}."
        try:
            self._clear()
        except EngineError as trouble:
            self._write(f"What was made could not be removed: {trouble}\n")
        return self._over(status, message)

    def _clear(self) -> None:
        """Whatever an earlier or broken try left under our names goes."""
        for ref in {self.step.ref, self._commit_ref}:
            image = self._image(ref)
            if image and image.labels.get(naming.LABEL_IMAGE) == self.step.image_id:
                self._runtime.remove_image(ref)
        self._clear_unnamed()

    def _clear_unnamed(self) -> None:
        """What an engine that died left on its way to a name or to its removal, with the secrets
        beside it. No other image has this build yet: nobody was told of one."""
        step = self.step
        self._runtime.remove_unnamed_images(
            {naming.LABEL_IMAGE: step.image_id, naming.LABEL_BUILD: step.build_id}
        )

    def _await_wake(self) -> None:
        until = clock.monotonic() + _WAKE_PATIENCE
        while clock.monotonic() < until:
            try:
                container = self._runtime.inspect_container(self.step.container_id)
            except NotFound:
                return
            if container.state != "paused":
                return
            clock.sleep(0.05)
        self._wake_container()

    def _wake_container(self) -> None:
        if not self.step.container_id:
            return
        try:
            self._runtime.unpause_container(self.step.container_id)
        except EngineError:
            # Gone, or the engine is away: then the next look finds it paused and wakes it.
            return

    def _say_once(self, text: str) -> None:
        if text != self._said:
            self._said = text
            self._write(f"{text}\n")

    def _raise_if_leaving(self) -> None:
        if self._leaving:
            raise Interrupted("The agent stops; the snapshot goes on later.")

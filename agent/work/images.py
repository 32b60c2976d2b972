"""One pull or build from start to verified end; runs in a worker thread of `works`."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from agent import clock
from agent.diff.images import digest_of
from agent.errors import AgentError, NotFound, StepFailed
from agent.protocol.report import BuildStatus
from agent.steps import BuildImage, PullImage

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.engine_requests import BuildRequest
    from agent.observed import ObservedImage
    from agent.runtime.port import Output, Runtime, Stream

_PROGRESS_SECONDS = 0.5


class ImageWork:
    """`cancel` may come from any thread and at any moment; the engine's work ends with it."""

    def __init__(
        self,
        step: PullImage | BuildImage,
        runtime: Runtime,
        *,
        timeout: float,
        write: Callable[[str], None],
        on_progress: Callable[[BuildStatus], None],
    ) -> None:
        self.step = step
        self.made_it = False
        self._runtime = runtime
        self._timeout = timeout
        self._write = write
        self._on_progress = on_progress
        self._lock = threading.Lock()
        self._stream: Stream[Output] | None = None
        self._reason = ""
        self._next_progress = 0.0

    def cancel(self, reason: str) -> None:
        with self._lock:
            self._reason = self._reason or reason
            stream = self._stream
        if stream is not None:
            stream.close()

    @property
    def is_cancelled(self) -> bool:
        return bool(self._reason)

    def run(self) -> BuildStatus:
        """Never raises: every end is a status."""
        timer = threading.Timer(self._timeout, self.cancel, ["timeout"])
        timer.daemon = True
        timer.start()
        try:
            image = self._make()
        except AgentError as problem:
            return self._ended(str(problem))
        finally:
            timer.cancel()
        if self._reason:
            return self._ended("")
        self._write(f"Done: {image.id}\n")
        return BuildStatus(
            seq=0,
            image_id=self.step.image_id,
            build_id=self.step.build_id,
            status="finished",
            progress=100,
            digest=digest_of(image, self.ref),
            engine_id=image.id,
            size_bytes=image.size_bytes,
        )

    @property
    def ref(self) -> str:
        return self.step.ref if isinstance(self.step, PullImage) else self.step.request.ref

    def _ended(self, problem: str) -> BuildStatus:
        status, message = "failed", problem
        if self._reason == "timeout":
            message = f"Stopped after {self._timeout:g} seconds, the host's limit."
        elif self._reason:
            status, message = "cancelled", f"Cancelled: {self._reason}."
        self._write(f"{message}\n")
        return BuildStatus(
            seq=0,
            image_id=self.step.image_id,
            build_id=self.step.build_id,
            status=status,
            message=message,
        )

    def _make(self) -> ObservedImage:
        before = self._present()
        if before and isinstance(self.step, PullImage) and self.step.accept_present:
            self._write(f"{self.ref} is already on this host.\n")
            return before
        if self._reason:
            raise StepFailed("Cancelled.")
        self._report(0)
        self._follow(self._open())
        # Success is what the engine has, not what its stream said.
        image = self._present()
        if image is None:
            raise StepFailed(f"The engine reported success, but {self.ref} is not there.")
        self.made_it = before is None or before.id != image.id
        return image

    def _open(self) -> Stream[Output]:
        step = self.step
        if isinstance(step, PullImage):
            stream = self._runtime.pull_image(step.ref, step.credential)
        else:
            self._check_size(step.request)
            stream = self._runtime.build_image(step.request, step.credential)
        with self._lock:
            self._stream = stream
            cancelled = bool(self._reason)
        if cancelled:
            stream.close()
        return stream

    @staticmethod
    def _check_size(request: BuildRequest) -> None:
        if request.size_bytes > request.most_bytes:
            raise StepFailed(
                f"The build's files have {request.size_bytes} bytes; "
                f"this host takes {request.most_bytes}."
            )

    def _follow(self, stream: Stream[Output]) -> None:
        try:
            for output in stream:
                self._write(output.text)
                if output.error:
                    raise StepFailed(output.error)
                if output.progress is not None:
                    self._report(output.progress)
                if self._reason:
                    return
        finally:
            stream.close()
        if self._reason:
            raise StepFailed("Cancelled.")

    def _present(self) -> ObservedImage | None:
        try:
            return self._runtime.inspect_image(self.ref)
        except NotFound:
            return None

    def _report(self, progress: int) -> None:
        now = clock.monotonic()
        if now < self._next_progress:
            return
        self._next_progress = now + _PROGRESS_SECONDS
        self._on_progress(
            BuildStatus(
                seq=0,
                image_id=self.step.image_id,
                build_id=self.step.build_id,
                status="building",
                progress=progress,
            )
        )

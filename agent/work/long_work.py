"""What pulls, builds and snapshots have in common: a step, a way to end early, and a status."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from agent.errors import NotFound
from agent.protocol.report import BuildStatus
from agent.steps import BuildImage, PullImage, SnapshotImage

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.observed import ObservedImage
    from agent.runtime.port import Runtime

Made = TypeVar("Made", bound=PullImage | BuildImage | SnapshotImage)


class LongWork(Generic[Made]):
    """`write` takes output, `on_progress` a status on the way; the end is told by who runs it."""

    def __init__(
        self,
        step: Made,
        runtime: Runtime,
        *,
        timeout: float,
        write: Callable[[str], None],
        on_progress: Callable[[BuildStatus], None],
    ) -> None:
        self.step = step
        self.made_id = ""
        self.broke_off = False
        self._runtime = runtime
        self._timeout = timeout
        self._write = write
        self._on_progress = on_progress
        # Why it shall end; empty while it shall not.
        self._reason = ""

    @property
    def is_cancelled(self) -> bool:
        return bool(self._reason)

    def tidy(self, patience: float) -> None:
        """Most leave nothing."""

    def _image(self, ref: str) -> ObservedImage | None:
        try:
            return self._runtime.inspect_image(ref)
        except NotFound:
            return None

    def _status(self, status: str, message: str = "", progress: int | None = None) -> BuildStatus:
        return BuildStatus(
            seq=0,
            image_id=self.step.image_id,
            build_id=self.step.build_id,
            status=status,
            message=message,
            progress=progress,
        )

    def _finished(self, image: ObservedImage, *, digest: str = "") -> BuildStatus:
        return BuildStatus(
            seq=0,
            image_id=self.step.image_id,
            build_id=self.step.build_id,
            status="finished",
            progress=100,
            digest=digest,
            engine_id=image.id,
            size_bytes=image.size_bytes,
        )

    def _over(self, status: str, message: str) -> BuildStatus:
        """The end of what made nothing; the log's last line says why."""
        self._write(f"{message}\n")
        return self._status(status, message)

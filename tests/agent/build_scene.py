"""One build with what it adds from elsewhere, on an engine in memory."""

from __future__ import annotations

import io
import tarfile
from typing import TYPE_CHECKING, Any

from agent.engine_requests import BuildRequest
from agent.fetch.registry import RegistryGate
from agent.protocol import naming
from agent.runtime.fake import FakeRuntime
from agent.steps import BuildImage
from agent.work.images import ImageWork
from agent.work.sources import Sources
from tests.agent.fake_fetch import FakeFetcher

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from agent.fetch.port import Fetcher

REF = "trailer/i-app:latest"
IMAGE = naming.sources_image("m")


class Build:
    def __init__(
        self,
        fetcher: Fetcher,
        folder: Path,
        *lines: str,
        allow: tuple[str, ...] = (),
        runtime: FakeRuntime | None = None,
        **given: Any,
    ) -> None:
        self.runtime = runtime or FakeRuntime()
        self.log: list[str] = []
        self.folder = folder
        dockerfile = "\n".join(("FROM busybox", *lines, ""))
        step = BuildImage(
            image_id="i-app",
            key="image:i-app",
            name="app",
            cause="wanted",
            build_id="b-app",
            request=BuildRequest(ref=REF, dockerfile=dockerfile, mark="m", **given),
        )
        self.work = ImageWork(
            step,
            self.runtime,
            timeout=20,
            write=self.log.append,
            on_progress=lambda _: None,
            registries=RegistryGate(FakeFetcher()),
            sources=Sources(fetcher=fetcher, scratch=folder, allow=allow),
        )

    def run(self) -> tuple[str, str]:
        ended = self.work.run()
        self.work.tidy(1)
        assert ended is not None
        assert not self.folder.exists() or list(self.folder.iterdir()) == []
        return ended.status, ended.message

    def files(self) -> Mapping[str, tuple[tarfile.TarInfo, bytes]]:
        with tarfile.open(fileobj=io.BytesIO(self.runtime.imported[IMAGE])) as archive:
            return {
                entry.name: (entry, archive.extractfile(entry).read())  # type: ignore[union-attr]
                for entry in archive
            }

"""Images of the in-memory engine, and a registry beside it that tests fill by hand."""

from __future__ import annotations

import hashlib
import threading
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING

from agent.errors import Conflict, EngineError, EngineUnavailable, NotFound
from agent.observed import ObservedImage
from agent.protocol import image_refs
from agent.runtime.fake_streams import FakeStream
from agent.runtime.port import Output

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agent.engine_requests import BuildRequest, CommitRequest, Credential
    from agent.observed import ObservedContainer


class FakeImages(ABC):
    """`registry` maps a reference to the image id that a pull would bring (or that a push left).
    `commits` is what a commit does: "at once", "held" until `let_commit`, "daemon dies", or
    "daemon dies over the name" of the image it has made."""

    containers: dict[str, ObservedContainer]

    def __init__(self) -> None:
        self.images: dict[str, ObservedImage] = {}
        self.registry: dict[str, str] = {}
        self.endless_builds = False
        # What such a build prints before it hangs.
        self.endless_text = "Step 1/1 : RUN sleep inf\n"
        # How many builds end without a word, as when the daemon dies.
        self.broken_builds = 0
        # Images that others were built from, which the engine knows and no list shows.
        self.bases: set[str] = set()
        self.commits = "at once"
        self.let_commit = threading.Event()
        self.committed: list[str] = []
        self.imported: dict[str, bytes] = {}
        # What builds were asked for, as they came.
        self.built: list[BuildRequest] = []
        self.data_root = "/fake"
        self.asked: list[str] = []
        self.registry_answers = threading.Event()
        self.registry_answers.set()
        self._paused_here: set[str] = set()

    # --- by hand ---

    def add_image(
        self, ref: str, *, image_id: str = "", labels: Mapping[str, str] | None = None
    ) -> str:
        image_id = image_id or "sha256:" + hashlib.sha256(ref.encode()).hexdigest()
        tag = image_refs.normal(ref)
        for known in list(self.images.values()):
            kept = tuple(other for other in known.tags if other != tag)
            self.images[known.id] = replace(known, tags=kept)
        before = self.images.get(image_id)
        self.images[image_id] = ObservedImage(
            id=image_id,
            tags=(*before.tags, tag) if before else (tag,),
            digests=before.digests if before else (),
            size_bytes=1000,
            labels=dict(labels or (before.labels if before else {})),
        )
        return image_id

    def forget_pauses(self) -> None:
        """As after a start of the daemon."""
        self._paused_here.clear()

    # --- the port ---

    def inspect_image(self, ref: str) -> ObservedImage:
        self._call("inspect_image")
        for image in self.images.values():
            if ref == image.id or image_refs.normal(ref) in image.tags:
                return image
        raise NotFound(f"No such image: {ref}")

    def remove_image(self, ref: str) -> None:
        self._change("remove_image")
        try:
            image = self.inspect_image(ref)
        except NotFound:
            return
        if any(container.image_id == image.id for container in self.containers.values()):
            raise Conflict(f"unable to remove {ref}: container is using it")
        if image.id in self.bases:
            raise Conflict(f"unable to delete {ref}: image has dependent child images")
        kept = tuple(tag for tag in image.tags if tag != image_refs.normal(ref))
        if kept:
            self.images[image.id] = replace(image, tags=kept)
        else:
            del self.images[image.id]

    def remove_unnamed_images(self, labels: Mapping[str, str]) -> None:
        self._change("remove_unnamed_images")
        used = {container.image_id for container in self.containers.values()}
        for image in list(self.images.values()):
            if not image.tags and image.id not in used and labels.items() <= image.labels.items():
                del self.images[image.id]

    def tag_image(self, ref: str, target: str) -> None:
        self._change("tag_image")
        self.add_image(target, image_id=self.inspect_image(ref).id)

    def pull_image(self, ref: str, credential: Credential | None) -> FakeStream:
        self._change("pull_image")
        if ref not in self.registry:
            return FakeStream([Output(error=f"manifest for {ref} not found")])
        image_id = self.add_image(ref, image_id=self.registry[ref])
        digest = f"{image_refs.name_of(ref)}@{_digest(image_id)}"
        self.images[image_id] = replace(self.images[image_id], digests=(digest,))
        return FakeStream(
            [Output(text="pulling\n", progress=50), Output(text="done\n", is_last=True)]
        )

    def push_image(self, ref: str, credential: Credential | None) -> FakeStream:
        self._change("push_image")
        if credential is not None and credential.username == "nobody":
            return FakeStream([Output(error="unauthorized: authentication required")])
        image = self.inspect_image(ref)
        self.registry[ref] = image.id
        return FakeStream([Output(text="pushed\n", digest=_digest(image.id), is_last=True)])

    def build_image(self, request: BuildRequest, credential: Credential | None) -> FakeStream:
        self._change("build_image")
        self.built.append(request)
        if self.broken_builds:
            self.broken_builds -= 1
            return FakeStream([Output(text="Step 1/1 : FROM x\n", progress=0)])
        if self.endless_builds:
            return FakeStream([Output(text=self.endless_text)], endless=True)
        if "FAIL" in request.dockerfile:
            return FakeStream([Output(text="Step 1/1\n"), Output(error="returned code 1")])
        digest = hashlib.sha256(request.dockerfile.encode()).hexdigest()
        self.add_image(request.ref, image_id=f"sha256:{digest}", labels=request.labels)
        # As a careless step does.
        printed = "".join(f"{value}\n" for value in request.secrets.values())
        return FakeStream(
            [
                Output(text="Step 1/1 : FROM x\n", progress=0),
                Output(text=f"{printed}ok\n", is_last=True),
            ]
        )

    def import_files(self, ref: str, archive: Iterable[bytes]) -> None:
        self._change("import_files")
        content = b"".join(archive)
        self.imported[ref] = content
        self.add_image(ref, image_id=f"sha256:{hashlib.sha256(content).hexdigest()}")

    def remove_build_containers(self, mark: str) -> bool:
        self._change("remove_build_containers")
        return False

    def drop_step(self, image_id: str, *, patience: float) -> bool:
        self._change("drop_step")
        return True

    def commit_container(self, request: CommitRequest) -> None:
        self._change("commit_container")
        container = self._get(request.container_id)
        self._paused_here.add(container.id)
        self._set(container, "pause", state="paused")
        if self.commits == "held":
            self.let_commit.wait(20)
        if self.commits.startswith("daemon dies"):
            if self.commits == "daemon dies over the name":
                unnamed = ObservedImage(id="sha256:unnamed", labels=dict(request.labels))
                self.images[unnamed.id] = unnamed
            self.forget_pauses()
            raise EngineUnavailable("The container engine cannot be reached.")
        made_of = f"{request.ref}{container.id}{sorted(request.labels.items())}"
        image_id = "sha256:" + hashlib.sha256(made_of.encode()).hexdigest()
        self.add_image(request.ref, image_id=image_id, labels=request.labels)
        self.committed.append(request.ref)
        still = self.containers.get(container.id)
        if still is not None and still.state == "paused":
            self._set(still, "unpause", state="running")

    def seal_image(self, source: str, target: str) -> None:
        self._change("seal_image")
        committed = self.inspect_image(source)
        image_id = "sha256:" + hashlib.sha256(f"sealed {committed.id}".encode()).hexdigest()
        self.add_image(target, image_id=image_id, labels=committed.labels)

    def recalls_pause(self, container_id: str) -> bool | None:
        self._call("recalls_pause")
        return container_id in self._paused_here

    def registry_digest(self, ref: str, credential: Credential | None) -> str:
        self._call("registry_digest")
        self.asked.append(ref)
        self.registry_answers.wait(20)
        if ref not in self.registry:
            raise EngineError(f"manifest unknown: {ref}")
        return _digest(self.registry[ref])

    def sign_in(self, credential: Credential) -> None:
        self._call("sign_in")
        self.asked.append(credential.server)
        if credential.username == "nobody":
            raise EngineError("login attempt failed with status: 401 Unauthorized")

    # --- of the engine beside ---

    @abstractmethod
    def _call(self, verb: str) -> None: ...

    @abstractmethod
    def _change(self, verb: str) -> None: ...

    @abstractmethod
    def _get(self, container_id: str) -> ObservedContainer: ...

    @abstractmethod
    def _set(self, container: ObservedContainer, action: str, **fields: object) -> None: ...


def _digest(image_id: str) -> str:
    return "sha256:" + hashlib.sha256(f"manifest of {image_id}".encode()).hexdigest()

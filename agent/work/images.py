"""One pull or build from start to verified end; runs in a worker thread of `works`."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar

from agent import clock
from agent.diff.images import digest_of
from agent.errors import (
    AgentError,
    EngineError,
    EngineUnavailable,
    RegistryRefused,
    StepFailed,
)
from agent.fetch.cancellation import Cancellation
from agent.protocol import image_refs, naming
from agent.protocol.bases import dockerfile_bases
from agent.protocol.remote_sources import BadSource, adds, arguments_of
from agent.runtime.base_images import MissingBase, built_target
from agent.runtime.dockerfile_sources import with_sources
from agent.steps import BuildImage, PullImage
from agent.work.detached import Detached
from agent.work.long_work import LongWork
from agent.work.masked_output import MaskedOutput
from agent.work.patience import Patience
from agent.work.pull_problems import pull_problem
from agent.work.sources import Fetching, Plan, Sources

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.engine_requests import BuildRequest
    from agent.fetch.registry import RegistryCheck
    from agent.observed import ObservedImage
    from agent.protocol.remote_sources import Add
    from agent.protocol.report import BuildStatus
    from agent.runtime.port import Output, Runtime, Stream

_PROGRESS_SECONDS = 0.5
# Seconds without a byte from a registry after which a pull or push is given up.
TRANSFER_IDLE: Final = 120.0
_LOOK_AGAIN: Final = 0.1
_LEAVING: Final = "the agent stops"

Value = TypeVar("Value")


class ImageWork(LongWork[PullImage | BuildImage]):
    """`cancel` may come from any thread and at any moment; the engine's work ends with it."""

    is_urgent = False

    def __init__(
        self,
        step: PullImage | BuildImage,
        runtime: Runtime,
        *,
        timeout: float,
        write: Callable[[str], None],
        on_progress: Callable[[BuildStatus], None],
        registries: RegistryCheck,
        sources: Sources | None = None,
    ) -> None:
        secrets = step.request.secrets.values() if isinstance(step, BuildImage) else ()
        self._output = MaskedOutput(write, secrets)
        super().__init__(
            step, runtime, timeout=timeout, write=self._output.write, on_progress=on_progress
        )
        self._registries = registries
        # Ends questions to a registry, which the engine knows nothing of.
        self._cancellation = Cancellation()
        self._lock = threading.Lock()
        self._stream: Stream[Output] | None = None
        self._next_progress = 0.0
        self._digest = ""
        # The image of the step that the labels made, while nothing came of the build.
        self._labels_step = ""
        self._sources = sources or Sources()
        # The image with what was fetched for the build, while it may be on the engine.
        self._sources_image = ""
        self._patience = Patience(total=timeout, idle=self._idle, on_end=self.cancel)

    # --- from other threads ---

    @property
    def lane(self) -> str:
        return "pull" if isinstance(self.step, PullImage) else "build"

    def claims(self) -> tuple[str, ...]:
        return self.step.claims

    def cancel(self, reason: str) -> None:
        with self._lock:
            self._reason = self._reason or reason
            stream = self._stream
        self._cancellation.cancel()
        if stream is not None:
            stream.close()

    def leave(self) -> None:
        self.cancel(_LEAVING)

    def tidy(self, patience: float) -> None:
        """An engine that is away keeps the image; the next build makes use of it. Steps that it
        may still run are ended by a later cycle."""
        if isinstance(self.step, BuildImage) and self.is_cancelled:
            try:
                self._end_steps(self.step.request.mark, patience)
            except EngineError:
                self.broke_off = True
        step = self._labels_step
        with suppress(EngineError):
            self._drop_sources()
        with suppress(EngineError):
            if step and self._runtime.drop_step(step, patience=patience):
                self._labels_step = ""

    def _end_steps(self, mark: str, patience: float) -> None:
        """Until a look finds none: an engine that has not noticed that its caller left, as behind
        a proxy that keeps the connection, would let a step run on."""
        deadline = clock.monotonic() + patience
        while self._runtime.remove_build_containers(mark) and clock.monotonic() < deadline:
            clock.sleep(_LOOK_AGAIN)

    # --- the work ---

    def run(self) -> BuildStatus | None:
        """Every end is a status; None when the agent stops or the engine breaks off."""
        self._patience = Patience(total=self._timeout, idle=self._idle, on_end=self.cancel)
        try:
            with self._patience:
                image = self._make()
        except EngineUnavailable as problem:
            self.broke_off = True
            if not self._reason:
                # Nobody knows what came of it: it is done again once the engine is back.
                self._write(f"{problem}\n")
                return None
            return self._ended(str(problem))
        except RegistryRefused as problem:
            return self._ended(str(problem), said_by_engine=False)
        except AgentError as problem:
            return self._ended(str(problem))
        if self._reason:
            return self._ended("")
        self._write(f"Done: {image.id}\n")
        return self._finished(image, digest=self._digest or digest_of(image, self.ref))

    @property
    def ref(self) -> str:
        return self.step.ref if isinstance(self.step, PullImage) else self.step.request.ref

    @property
    def _idle(self) -> float:
        """A pull counts as idle by its registry, a build by what it prints."""
        if isinstance(self.step, PullImage):
            return TRANSFER_IDLE
        return self.step.request.idle_timeout

    def _ended(self, problem: str, *, said_by_engine: bool = True) -> BuildStatus | None:
        if self._reason == _LEAVING:
            return None
        status, message = "failed", problem
        if not self._reason and said_by_engine and isinstance(self.step, PullImage):
            message = pull_problem(self.ref, problem)
        if self._reason == "timeout":
            message = f"Stopped after {self._timeout:g} seconds, the host's limit."
        elif self._reason == "idle":
            message = f"Stopped because it printed nothing for {self._idle:g} seconds."
        elif self._reason:
            status, message = "cancelled", f"Cancelled: {self._reason}."
        return self._over(status, self._output.masked(message))

    def _make(self) -> ObservedImage:
        step = self.step
        before = self._image(self.ref)
        if before and isinstance(step, PullImage) and step.accept_present:
            self._write(f"{self.ref} is already on this host.\n")
            return before
        self._report(0)
        if isinstance(step, PullImage):
            self._check_registry(step.ref)
            self._follow(lambda: self._runtime.pull_image(step.ref, step.credential))
        else:
            self._check_size(step.request)
            if step.push_to:
                self._check_registry(step.push_to)
            if step.resumed:
                self._runtime.remove_build_containers(step.request.mark)
                self._runtime.remove_image(naming.sources_image(step.request.mark))
            self._build(step, self._with_sources(step.request))
            self._drop_sources()
        # Success is what the engine has, not what its stream said.
        image = self._image(self.ref)
        if image is None:
            raise StepFailed(f"The engine reported success, but {self.ref} is not there.")
        self._labels_step = ""
        self.made_id = "" if before and before.id == image.id else image.id
        if isinstance(step, BuildImage) and step.push_to:
            self._push(step, image)
        return image

    @staticmethod
    def _check_size(request: BuildRequest) -> None:
        if request.size_bytes > request.most_bytes:
            raise StepFailed(
                f"The build's files have {request.size_bytes} bytes; "
                f"this host takes {request.most_bytes}."
            )

    def _with_sources(self, request: BuildRequest) -> BuildRequest:
        """What its ADD lines name elsewhere is fetched here and given to the engine as an image:
        it fetches nothing itself."""
        try:
            found = tuple(adds(request.dockerfile, request.build_args, built_target(request)))
        except BadSource as problem:
            raise StepFailed(str(problem)) from problem
        image = naming.sources_image(request.mark or request.ref.replace(":", "/"))
        if any(add.remote for add in found):
            self._sources_image = image
            with self._sources.folder() as folder:
                fetching = Fetching(self._sources.fetcher, folder, self._plan(request, found))
                self._follow(lambda: fetching, tells_progress=False)
                self._waited(
                    lambda: self._runtime.import_files(image, fetching.archive()),
                    dispose=lambda _: self._forget_sources(image),
                )
        return replace(
            request,
            dockerfile=with_sources(request.dockerfile, found, image),
            filled_in=arguments_of(found),
        )

    def _plan(self, request: BuildRequest, found: tuple[Add, ...]) -> Plan:
        return Plan(
            adds=found,
            allow=self._sources.allow,
            most_bytes=request.most_bytes - request.size_bytes,
            host_bytes=request.most_bytes,
            total=self._timeout,
            idle=request.idle_timeout,
            buildkit=bool(request.secrets),
        )

    def _forget_sources(self, image: str) -> None:
        """Of an import that ended behind the build."""
        with suppress(EngineError):
            self._runtime.remove_image(image)

    def _drop_sources(self) -> None:
        if self._sources_image:
            self._runtime.remove_image(self._sources_image)
            self._sources_image = ""

    def _build(self, step: BuildImage, request: BuildRequest) -> None:
        """From bases that are here before it begins: the engine looks at none of them."""
        fetched = set[str]()
        if request.pull_base:
            # As they are written: the image with the sources is none of a registry.
            given = step.request
            bases = dockerfile_bases(given.dockerfile, given.build_args, built_target(given))
            fetched = {base.text for base in bases}
            for ref in sorted(fetched):
                self._fetch(ref, step)
            # The engine would ask again, and a registry may answer otherwise.
            request = replace(request, pull_base=False)
        while True:
            try:
                self._follow(lambda: self._runtime.build_image(request, step.credential))
            except MissingBase as missing:
                if missing.ref in fetched:
                    raise
                self._fetch(missing.ref, step)
                fetched.add(missing.ref)
            else:
                return

    def _fetch(self, ref: str, step: BuildImage) -> None:
        given = step.credential
        fits = given is not None and image_refs.credential_fits(ref, given.server)
        credential = given if fits else None
        try:
            self._check_registry(ref)
        except RegistryRefused as problem:
            raise RegistryRefused(f"The base image {ref} was not fetched. {problem}") from problem
        try:
            self._follow(lambda: self._runtime.pull_image(ref, credential), tells_progress=False)
        except EngineUnavailable:
            raise
        except AgentError as problem:
            raise StepFailed(
                f"The base image {ref} could not be fetched. {pull_problem(ref, str(problem))}"
            ) from problem

    def _check_registry(self, ref: str) -> None:
        """Before the engine connects to it for somebody; raises RegistryRefused."""
        self._raise_if_cancelled()
        self._registries.reference(ref, self.step.registries, self._cancellation)
        self._patience.heard()

    def _push(self, step: BuildImage, image: ObservedImage) -> None:
        """The engine pushes only what carries the target's name: it does for that while."""
        target = step.push_to
        self._check_registry(target)
        before = self._image(target)
        if before and step.resumed and before.labels.get(naming.LABEL_IMAGE) == step.image_id:
            # The name that a push left which was killed over it.
            before = None
        self._runtime.tag_image(image.id, target)
        try:
            self._follow(lambda: self._runtime.push_image(target, step.push_credential))
        except EngineUnavailable:
            raise
        except AgentError as problem:
            raise StepFailed(
                f"The image was built, but it could not be pushed to {target}: {problem}"
            ) from problem
        finally:
            if before is None:
                self._runtime.remove_image(target)
            elif before.id != image.id:
                self._runtime.tag_image(before.id, target)

    def _follow(self, begin: Callable[[], Stream[Output]], *, tells_progress: bool = True) -> None:
        stream, is_over = self._opened(begin), False
        try:
            for output in stream:
                self._patience.heard()
                self._write(output.text)
                if output.error:
                    raise StepFailed(output.error)
                is_over = is_over or output.is_last
                self._digest = output.digest or self._digest
                self._labels_step = output.labels_step or self._labels_step
                if output.progress is not None and tells_progress:
                    self._report(output.progress)
                self._raise_if_cancelled()
        finally:
            stream.close()
            self._output.flush()
        self._raise_if_cancelled()
        if not is_over:
            raise EngineUnavailable("The container engine broke off in the middle of it.")

    def _raise_if_cancelled(self) -> None:
        if self._reason:
            raise StepFailed("Cancelled.")

    def _opened(self, begin: Callable[[], Stream[Output]]) -> Stream[Output]:
        """An engine that waits for a registry answers nothing at all, and must not hold a cancel
        back; its answer, when it comes, is closed at once."""
        stream = self._waited(begin, dispose=lambda stream: stream.close())
        with self._lock:
            self._stream = stream
            cancelled = bool(self._reason)
        if cancelled:
            stream.close()
        return stream

    def _waited(self, call: Callable[[], Value], *, dispose: Callable[[Value], None]) -> Value:
        self._raise_if_cancelled()
        opening = Detached(call, name=f"open-{self.step.build_id[:8]}")
        try:
            while not opening.wait(0.05):
                self._raise_if_cancelled()
        except StepFailed:
            opening.leave(dispose)
            raise
        return opening.result()

    def _report(self, progress: int) -> None:
        now = clock.monotonic()
        if now < self._next_progress:
            return
        self._next_progress = now + _PROGRESS_SECONDS
        self._on_progress(self._status("building", progress=progress))

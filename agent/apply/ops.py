"""One handler per step: a single engine call, with the journal kept around it; no decisions."""

from __future__ import annotations

import uuid
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, assert_never

from agent import clock
from agent.apply.trial import Trial
from agent.diff.never_started import is_stale_start
from agent.diff.status import with_tail
from agent.diff.view import FailedReplace
from agent.errors import AgentError, Conflict, EngineError, EngineUnavailable, NotFound, StepFailed
from agent.protocol import naming
from agent.protocol.prerequisites import ROUTES_FOLDER
from agent.protocol.report import WorkspaceEvent
from agent.routing.traefik import ROUTES_FILES
from agent.steps import (
    WORKSPACE,
    BuildImage,
    CancelBuild,
    ClearBuild,
    ConnectNetwork,
    CreateContainer,
    CreateNetwork,
    CreateVolume,
    DisconnectNetwork,
    PullImage,
    RemoveContainer,
    RemoveImage,
    RemoveNetwork,
    RemoveSuperseded,
    RemoveVolume,
    RenameContainer,
    SnapshotImage,
    StartContainer,
    StopContainer,
    UnpauseContainer,
    UpdateContainer,
    WaitHealthy,
    WriteRoutes,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.runtime.port import Runtime
    from agent.steps import Ref, Step
    from agent.store.journal import Journal
    from agent.store.previous_logs import PreviousLogs

_HEALTH_POLL = 0.25
_SLOWEST_POLL = 1.0
# Of one attempt, by an engine that goes away or does not answer.
_MOST_BROKEN_OFF = 3


class LongWork(Protocol):
    """Builds, pulls and snapshots: started here, finished on their own."""

    def start(self, step: PullImage | BuildImage | SnapshotImage) -> None: ...

    def cancel(self, step: CancelBuild) -> None: ...


class Obsolete(StepFailed):
    """The object's desired state moved on while the step waited."""


class Ops:
    def __init__(
        self,
        runtime: Runtime,
        journal: Journal,
        work: LongWork,
        previous: PreviousLogs | None = None,
    ) -> None:
        self._runtime = runtime
        self._journal = journal
        self._work = work
        self._previous = previous

    def perform(
        self,
        step: Step,
        resolve: Callable[[Ref], str],
        is_current: Callable[[], bool],
        tell: Callable[[str], None] = lambda engine_id: None,
    ) -> str:
        """The engine id of what was made or worked on; `resolve` turns a Ref into an id.

        `tell` is called while the intent still stands: what it writes is never lost in between.
        """
        intent = self._journal.intend(
            key=step.key, verb=step.verb, name=step.name, event=ledger_row(step)
        )
        try:
            engine_id = self._dispatch(step, resolve, is_current)
            tell(engine_id)
            return engine_id
        except Exception as problem:
            self._remember(step, problem)
            raise
        finally:
            # A crash leaves the intent behind; a failure is a result like any other.
            self._journal.settle(intent)

    def _remember(self, step: Step, problem: Exception) -> None:
        """Before anything is undone: an agent that dies now must not make this replace again. A
        newer wish says nothing about it, and an engine that is away or was interrupted
        only when it always is."""
        if step.attempt is None or isinstance(problem, Obsolete):
            return
        workspace_id = _object_id(step.key)
        if isinstance(problem, EngineUnavailable) or is_stale_start(str(problem)):
            times = self._journal.replace_broken_off(workspace_id, step.attempt)
            if times < _MOST_BROKEN_OFF:
                return
        expected = isinstance(problem, AgentError)
        message = str(problem) if expected else f"Internal error: {problem}"
        failed = FailedReplace(attempt=step.attempt, message=message)
        self._journal.replace_failed(workspace_id, failed)

    def _dispatch(
        self, step: Step, resolve: Callable[[Ref], str], is_current: Callable[[], bool]
    ) -> str:
        match step:
            case CreateContainer():
                return self._create_container(step, resolve)
            case StartContainer():
                return self._start(step, resolve)
            case StopContainer():
                return self._stop(step, resolve)
            case RemoveContainer():
                return self._remove(step, resolve)
            case WaitHealthy():
                return self._wait_healthy(step, resolve, is_current)
            case WriteRoutes():
                return self._write_routes(step, resolve)
            case (
                UnpauseContainer()
                | UpdateContainer()
                | RenameContainer()
                | ConnectNetwork()
                | DisconnectNetwork()
            ):
                return self._change(step, resolve)
            case CreateNetwork() | RemoveNetwork() | CreateVolume() | RemoveVolume():
                return self._resource(step)
            case PullImage() | BuildImage() | SnapshotImage():
                self._work.start(step)
                return ""
            case CancelBuild():
                self._work.cancel(step)
                return ""
            case ClearBuild() | RemoveImage() | RemoveSuperseded():
                return self._clear_image(step)
            case _:
                assert_never(step)

    def _create_container(self, step: CreateContainer, resolve: Callable[[Ref], str]) -> str:
        network_id = resolve(step.network) if step.network else ""
        try:
            container_id = self._runtime.create_container(
                step.request, network_id=network_id, alias=step.alias
            )
        except EngineError as problem:
            if "no command specified" not in str(problem).lower():
                raise
            raise StepFailed(
                f"Image {step.request.image} starts no program by itself. Set the command of the "
                "workspace, or a CMD or ENTRYPOINT in the image."
            ) from problem
        kind, _, object_id = step.key.partition(":")
        self._journal.own(container_id, kind=kind, object_id=object_id)
        return container_id

    def _clear_image(self, step: ClearBuild | RemoveImage | RemoveSuperseded) -> str:
        match step:
            case RemoveImage():
                self._runtime.remove_image(step.ref)
            case RemoveSuperseded():
                self._remove_superseded(step.engine_id)
            case ClearBuild():
                self._runtime.remove_build_containers(step.mark)
                self._runtime.remove_image(naming.sources_image(step.mark))
                self._drop_pushed_name(step)
                self._journal.steps_cleared(step.image_id)
            case _:
                assert_never(step)
        return ""

    def _drop_pushed_name(self, step: ClearBuild) -> None:
        """Unless it means something else by now, or a container was made by it."""
        if not step.push_to:
            return
        with suppress(NotFound, Conflict):
            image = self._runtime.inspect_image(step.push_to)
            if image.labels.get(naming.LABEL_IMAGE) == step.image_id:
                self._runtime.remove_image(step.push_to)

    def _remove_superseded(self, engine_id: str) -> None:
        """By its id the engine would remove it with its only name: one may be new since the look.
        What the engine will not give for other reasons is not asked for at every look."""
        try:
            if self._runtime.inspect_image(engine_id).tags:
                raise StepFailed(f"Image {engine_id} was given a name; it stays.")
            self._runtime.remove_image(engine_id)
        except Conflict as problem:
            self._journal.pull_refused(engine_id)
            raise StepFailed(f"Image {engine_id} is still needed: {problem}") from problem
        except NotFound:
            # Somebody else removed it.
            pass
        self._journal.pulls_gone([engine_id])

    def _start(self, step: StartContainer, resolve: Callable[[Ref], str]) -> str:
        container_id = resolve(step.container)
        self._journal.run_started(container_id)
        self._runtime.start_container(container_id)
        self._journal.mark_stopped(container_id, stopped=False)
        return container_id

    def _stop(self, step: StopContainer, resolve: Callable[[Ref], str]) -> str:
        container_id = resolve(step.container)
        if step.settle:
            clock.sleep(step.settle)
        # Before the act: a crash in between must not make our own stop look like drift.
        self._journal.mark_stopped(container_id, stopped=True, to_replace=step.to_replace)
        self._runtime.stop_container(container_id, timeout=step.timeout)
        return container_id

    def _remove(self, step: RemoveContainer, resolve: Callable[[Ref], str]) -> str:
        container_id = resolve(step.container)
        previous = self._previous if step.key.startswith(f"{WORKSPACE}:") else None
        if previous and not step.with_volumes:
            previous.keep(_object_id(step.key), container_id)
        self._runtime.remove_container(container_id, with_volumes=step.with_volumes)
        self._journal.disown(container_id)
        if previous and step.with_volumes:
            # The user ordered the removal: nothing of it is to stay.
            previous.forget(_object_id(step.key))
        return container_id

    def _change(
        self,
        step: UnpauseContainer
        | UpdateContainer
        | RenameContainer
        | ConnectNetwork
        | DisconnectNetwork,
        resolve: Callable[[Ref], str],
    ) -> str:
        container_id = resolve(step.container)
        match step:
            case UnpauseContainer():
                self._runtime.unpause_container(container_id)
            case UpdateContainer():
                self._runtime.update_container(
                    container_id,
                    nano_cpus=step.nano_cpus,
                    memory_bytes=step.memory_bytes,
                    restart_policy=step.restart_policy,
                )
            case RenameContainer():
                self._runtime.rename_container(container_id, step.to)
            case ConnectNetwork():
                network_id = resolve(step.network)
                self._runtime.connect_network(
                    network_id, container_id, alias=step.alias, address=step.address
                )
            case DisconnectNetwork():
                self._runtime.disconnect_network(resolve(step.network), container_id)
            case _:
                assert_never(step)
        return container_id

    def _resource(self, step: CreateNetwork | RemoveNetwork | CreateVolume | RemoveVolume) -> str:
        match step:
            case CreateNetwork():
                engine_id = self._runtime.create_network(step.request)
                kind, _, object_id = step.key.partition(":")
                self._journal.own(engine_id, kind=kind, object_id=object_id)
                return engine_id
            case RemoveNetwork():
                self._runtime.remove_network(step.engine_id)
                self._journal.disown(step.engine_id)
                return step.engine_id
            case CreateVolume():
                # The engine keeps the labels of a volume that is there already.
                labels = {**step.request.labels, naming.LABEL_INSTANCE: uuid.uuid4().hex}
                return self._runtime.create_volume(replace(step.request, labels=labels))
            case RemoveVolume():
                self._runtime.remove_volume(step.engine_name)
                return step.engine_name
            case _:
                assert_never(step)

    def _write_routes(self, step: WriteRoutes, resolve: Callable[[Ref], str]) -> str:
        container_id = resolve(step.container)
        for name in ROUTES_FILES:
            self._runtime.write_file(container_id, ROUTES_FOLDER, name, step.content)
        self._journal.save_routes(step.mark)
        return container_id

    def _wait_healthy(
        self, step: WaitHealthy, resolve: Callable[[Ref], str], is_current: Callable[[], bool]
    ) -> str:
        container_id = resolve(step.container)
        began, poll = clock.monotonic(), _HEALTH_POLL
        trial = Trial(began=began, timeout=step.timeout, steady=step.steady)
        while True:
            container = self._runtime.inspect_container(container_id)
            verdict = trial.judge(container, now=clock.monotonic())
            if verdict.is_up:
                if step.attempt:
                    self._journal.forget_failed_replaces([_object_id(step.key)])
                return container_id
            if verdict.problem:
                tail = f"{container.health_output}\n{self._runtime.log_tail(container_id)}"
                sentence = f"{verdict.problem} {step.otherwise}".rstrip()
                raise StepFailed(with_tail(sentence, tail))
            if not is_current():
                raise Obsolete("A newer revision is waiting.")
            clock.sleep(poll)
            # Without a health check only its end is of interest.
            poll = poll if container.health else min(2 * poll, _SLOWEST_POLL)


def ledger_row(step: Step) -> WorkspaceEvent | None:
    """The row that this step writes once it succeeded."""
    if not step.event:
        return None
    return WorkspaceEvent(
        seq=0,
        workspace_id=_object_id(step.key),
        event=step.event,
        cause=step.cause,
        at=clock.timestamp(),
        changes=step.changes,
        exit=step.ended,
    )


def _object_id(key: str) -> str:
    return key.partition(":")[2]

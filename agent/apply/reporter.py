"""Turns findings, steps and ends into report items; the only writer of the outbox for objects."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, assert_never

import msgspec

from agent import clock
from agent.plan import (
    BuildFinding,
    ImageCheck,
    ImageFinding,
    LeftoversFinding,
    ResourceFinding,
    TombstoneFinding,
    WorkspaceFinding,
)
from agent.protocol.report import (
    BuildStatus,
    CycleReport,
    ImageObserved,
    LeftoversReport,
    RegistryTested,
    ResourceStatus,
    TombstoneDone,
    WorkspaceEvent,
    WorkspaceStatus,
)
from agent.steps import (
    CreateNetwork,
    CreateVolume,
    RemoveContainer,
    RemoveImage,
    RemoveNetwork,
    RemoveVolume,
)

if TYPE_CHECKING:
    from agent.plan import Finding
    from agent.steps import Step
    from agent.store.outbox import Outbox

_LONGEST_MESSAGE = 4000


class Reporter:
    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._lock = threading.Lock()
        self._last: dict[str, WorkspaceFinding] = {}
        self._checks: dict[str, ImageCheck] = {}

    def found(self, finding: Finding) -> None:
        match finding:
            case WorkspaceFinding():
                self.workspace(finding)
            case ResourceFinding():
                self._resource(finding)
            case ImageFinding():
                self._outbox.put(self._image(finding))
            case BuildFinding():
                self.build(
                    BuildStatus(
                        seq=0,
                        image_id=finding.image_id,
                        build_id=finding.build_id,
                        status=finding.status,
                        message=finding.message,
                    )
                )
            case TombstoneFinding():
                self._tombstone(finding.tombstone_id, done=finding.done, why=finding.message)
            case LeftoversFinding():
                self._outbox.put(LeftoversReport(seq=0, leftovers=finding.leftovers))
            case _:
                assert_never(finding)

    def checked(self, check: ImageCheck) -> None:
        """Remembered: until the next look every report of this image says the same. A difference
        is told each time, because the server may wait for the registry to answer again."""
        with self._lock:
            self._checks[check.image_id] = check
        differs = bool(check.available_digest) and check.available_digest != check.digest
        self._outbox.put(self._image(check), again=differs)

    def forget_check(self, image_id: str) -> None:
        with self._lock:
            self._checks.pop(image_id, None)

    def _image(self, seen: ImageFinding | ImageCheck) -> ImageObserved:
        with self._lock:
            check = self._checks.get(seen.image_id)
        return ImageObserved(
            seq=0,
            image_id=seen.image_id,
            present=seen.present,
            engine_id=seen.engine_id,
            digest=seen.digest,
            size_bytes=seen.size_bytes,
            available_digest=check.available_digest if check else "",
            message=(seen.message or (check.message if check else ""))[:_LONGEST_MESSAGE],
        )

    def workspace(self, finding: WorkspaceFinding) -> None:
        with self._lock:
            self._last[finding.workspace_id] = finding
        self._outbox.put(
            WorkspaceStatus(
                seq=0,
                workspace_id=finding.workspace_id,
                revision=finding.revision,
                status=finding.status,
                message=finding.message[:_LONGEST_MESSAGE],
                container_id=finding.container_id,
                container_name=finding.container_name,
                started_at=finding.started_at,
                restart_count=finding.restart_count,
                health=finding.health,
                exit_code=finding.exit_code,
            )
        )

    def turn(self, workspace_id: str, *, revision: int, status: str, message: str = "") -> None:
        """Another status for a workspace whose container fields did not change."""
        with self._lock:
            last = self._last.get(workspace_id)
        self.workspace(
            WorkspaceFinding(
                workspace_id=workspace_id,
                revision=revision,
                status=status,
                message=message,
                container_id=last.container_id if last else "",
                container_name=last.container_name if last else "",
                started_at=last.started_at if last else "",
                restart_count=last.restart_count if last else 0,
            )
        )

    def resource_failed(self, kind: str, object_id: str, message: str) -> None:
        self._resource(
            ResourceFinding(resource=kind, object_id=object_id, status="error", message=message)
        )

    def event(self, row: WorkspaceEvent, *, revision: int | None, cycle: int) -> None:
        self._outbox.put(
            msgspec.structs.replace(row, at=clock.timestamp(), cycle=cycle, revision=revision)
        )

    def interrupted(self, row: WorkspaceEvent, *, revision: int | None) -> None:
        cause = f"{row.cause} (the agent was interrupted while doing it)"
        self._outbox.put(msgspec.structs.replace(row, cause=cause, revision=revision))

    def step_succeeded(self, step: Step, engine_id: str) -> None:
        kind, _, object_id = step.key.partition(":")
        match step:
            case CreateNetwork() | CreateVolume():
                self._resource(
                    ResourceFinding(
                        resource=kind,
                        object_id=object_id,
                        status="created",
                        engine_id=engine_id,
                    )
                )
            case RemoveContainer() | RemoveNetwork() | RemoveVolume() | RemoveImage():
                if step.tombstone_id:
                    self._tombstone(step.tombstone_id, done=True)
            case _:
                pass

    def tombstone_failed(self, tombstone_id: str, why: str) -> None:
        self._tombstone(tombstone_id, done=False, why=why)

    def build(self, status: BuildStatus) -> None:
        self._outbox.put(
            msgspec.structs.replace(status, message=status.message[:_LONGEST_MESSAGE])
        )

    def registry_tested(self, test_id: str, why_not: str) -> None:
        """Without a reason against it, the credential was accepted."""
        self._outbox.put(
            RegistryTested(
                seq=0,
                test_id=test_id,
                accepted=not why_not,
                message=why_not[:_LONGEST_MESSAGE],
            )
        )

    def cycle(self, report: CycleReport) -> None:
        self._outbox.put(report)

    def _resource(self, finding: ResourceFinding) -> None:
        self._outbox.put(
            ResourceStatus(
                seq=0,
                resource=finding.resource,
                object_id=finding.object_id,
                status=finding.status,
                message=finding.message[:_LONGEST_MESSAGE],
                engine_id=finding.engine_id,
                instance=finding.instance,
            )
        )

    def _tombstone(self, tombstone_id: str, *, done: bool, why: str = "") -> None:
        self._outbox.put(TombstoneDone(seq=0, tombstone_id=tombstone_id, done=done, message=why))

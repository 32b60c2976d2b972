"""The agent's parts, made once and handed to the loops."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agent.metrics.gpu_shelf import GpuShelf
from agent.metrics.subjects import Subjects

if TYPE_CHECKING:
    from agent.apply.executor import Executor
    from agent.apply.failures import Failures
    from agent.apply.reporter import Reporter
    from agent.health import HealthFile
    from agent.host_network.addresses import HostAddresses
    from agent.host_policy import HostPolicy
    from agent.loop.ends import EndWatch
    from agent.loop.session import Session
    from agent.loop.target import Target
    from agent.loop.wake import Wake
    from agent.runtime.port import Runtime
    from agent.server.port import Server
    from agent.sessions.manager import Sessions
    from agent.store.identity import Identity
    from agent.store.journal import Journal
    from agent.store.outbox import Outbox
    from agent.work.disk import DiskBrake
    from agent.work.works import Works


@dataclass(kw_only=True)
class Parts:
    identity: Identity
    runtime: Runtime
    server: Server
    journal: Journal
    outbox: Outbox
    reporter: Reporter
    failures: Failures
    target: Target
    session: Session
    works: Works
    disk: DiskBrake
    executor: Executor
    sessions: Sessions
    wake: Wake
    health: HealthFile
    policy: HostPolicy
    addresses: HostAddresses
    ends: EndWatch
    has_kvm: bool = True
    gpus: GpuShelf = field(default_factory=GpuShelf)
    subjects: Subjects = field(default_factory=Subjects)
    # The last brake message that was told, so that a held cleanup is told once.
    held_message: str = ""
